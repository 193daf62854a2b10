# A judging host. `--target cpu` needs nothing; `--target gpu` needs the NVIDIA container toolkit, and
# a CUDA_IMAGE whose CUDA is the one that the pinned torch was built with.
ARG PYTHON_IMAGE=python:3.11.15-slim-bookworm
ARG CUDA_IMAGE=nvidia/cuda:13.0.1-devel-ubuntu24.04

FROM ${PYTHON_IMAGE} AS cpu
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PKB_STATE_DIR=/state PKB_QUEUE=cpu
WORKDIR /srv/pkb
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap g++ \
    && rm -rf /var/lib/apt/lists/*
COPY requirements requirements
RUN pip install --no-cache-dir -r requirements/evaluator.txt -r requirements/torch.txt \
    -c requirements/constraints.txt
COPY problems problems
COPY evaluator evaluator
# No root: the sandbox's user namespace gives what setting it up takes. A number of its own, because
# the limit of processes counts all of a user's, those of other containers too.
RUN useradd --system --uid 10002 --create-home pkb && install -d -o pkb /state
USER pkb
VOLUME /state
CMD ["sh", "-c", "exec celery -A evaluator.worker worker -Q \"$PKB_QUEUE\" -c 1 --loglevel INFO"]

FROM ${CUDA_IMAGE} AS gpu
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PKB_STATE_DIR=/state PKB_QUEUE=gpu \
    PATH=/opt/venv/bin:$PATH
WORKDIR /srv/pkb
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap g++ python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/venv
COPY requirements requirements
RUN pip install --no-cache-dir -r requirements/evaluator.txt -r requirements/torch.txt \
    -c requirements/constraints.txt
COPY problems problems
COPY evaluator evaluator
# No root: the sandbox's user namespace gives what setting it up takes. A number of its own, because
# the limit of processes counts all of a user's, those of other containers too.
RUN useradd --system --uid 10002 --create-home pkb && install -d -o pkb /state
USER pkb
VOLUME /state
CMD ["sh", "-c", "exec celery -A evaluator.worker worker -Q \"$PKB_QUEUE\" -c 1 --loglevel INFO"]
