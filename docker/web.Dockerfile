# The site: gunicorn, management commands, no torch.
ARG PYTHON_IMAGE=python:3.11.15-slim-bookworm
FROM ${PYTHON_IMAGE}

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PKB_STATE_DIR=/state
WORKDIR /srv/pkb

COPY requirements/web.txt requirements/constraints.txt requirements/
RUN pip install --no-cache-dir -r requirements/web.txt -c requirements/constraints.txt

COPY manage.py ./
COPY docker/gunicorn.conf.py docker/
COPY problems problems
COPY evaluator evaluator
COPY leaderboard leaderboard
COPY templates templates
COPY static static
COPY fixtures fixtures
COPY docs docs

RUN useradd --system --uid 10001 --create-home pkb && install -d -o pkb /state
USER pkb
EXPOSE 8000
CMD ["gunicorn", "--config", "docker/gunicorn.conf.py", "leaderboard.wsgi:application", "--bind", "0.0.0.0:8000"]
