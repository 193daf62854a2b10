"""Runs the command line: `python -m evaluator.generate run|resume|status|pack|replay OUT`."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from evaluator.generate.budget import Purse, Spend
from evaluator.generate.exchange import Endpoint, Misconfigured
from evaluator.generate.host_versions import versions_of
from evaluator.generate.journal import Diverged, read_events
from evaluator.generate.judging import HostJudge, KernelJudge
from evaluator.generate.options import KEY_ENV, SITE, TOKEN_ENV, catalogue, changed, parser, plan_of
from evaluator.generate.packing import archive
from evaluator.generate.plan import (
    AGENTIC,
    Plan,
    RunFiles,
    attempts,
    load_plan,
    save_plan,
    save_prompt,
)
from evaluator.generate.progress import outcome_of, summary
from evaluator.generate.prompting import prompt_of
from evaluator.generate.running import Means, begin, make, purse_of, session
from evaluator.generate.scrubbing import scrubber
from evaluator.generate.shell import SandboxedShell, Shell, insist_on_sandbox
from evaluator.generate.site_judge import MODEL_CHARS, SiteJudge, site_of
from evaluator.generate.tools import tools_of
from evaluator.messages.text import plain_text


def main(argv: list[str] | None = None) -> int:
    """Return the exit status: 0 where all is done, 1 where attempts wait for `resume` or a replay
    differs, 2 for a wrong call or a server that cannot answer."""
    arguments = parser().parse_args(argv)
    commands = {"run": _run, "resume": _resume, "status": _status, "pack": _pack, "replay": _replay}
    try:
        return commands[arguments.command](arguments)
    except (ValueError, OSError, Misconfigured, Diverged) as error:
        print(f"generate: {plain_text(str(error), 1000)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("generate: interrupted; `resume` goes on", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    plan, place = plan_of(arguments), RunFiles(folder=arguments.out)
    problems = {entry["slug"]: entry for entry in catalogue()}
    versions = versions_of(plan)
    prompts = [
        (target, prompt_of(plan, target, problems[target.slug], versions))
        for target in plan.targets
    ]
    if arguments.print_prompt:
        print("\n".join(prompt.rendered(tools_of(plan)) for _, prompt in prompts), end="")
        return 0
    _check_host(plan)
    if place.plan.exists():
        raise ValueError(f"{place.folder} holds a run: go on with `resume`, or name another folder")
    with session(place):
        for target, prompt in prompts:
            save_prompt(place, target, prompt)
        save_plan(place, plan)
        return _make(place, plan)


def _resume(arguments: argparse.Namespace) -> int:
    place = RunFiles(folder=arguments.out)
    plan = changed(load_plan(place), arguments)
    _check_host(plan)
    with session(place):
        save_plan(place, plan)
        return _make(place, plan)


def _check_host(plan: Plan) -> None:
    """Raise ValueError where this host cannot do what the plan wants of it."""
    _endpoint(plan, None)
    if plan.shell:
        insist_on_sandbox()


def _make(place: RunFiles, plan: Plan) -> int:
    key = os.environ.get(plan.api_key_env or KEY_ENV)
    if not key and not plan.base_url:
        raise ValueError(f"the variable {plan.api_key_env or KEY_ENV} holds no key")
    token = _site_token(plan)
    purse = purse_of(place, plan)
    begin(place)
    endpoint = _endpoint(plan, key)
    scrub = scrubber(key, token, *_headers(plan).values())
    with _judge(place, plan, purse, token) as judge, _shell(plan, purse, judge) as shell:
        means = Means(endpoint=endpoint, judge=judge, shell=shell, scrub=scrub, asker_options={})
        try:
            outcomes = make(place, plan, means, purse, sys.stderr)
        except Misconfigured as error:  # some servers repeat a wrong key
            raise Misconfigured(scrub(str(error))) from None
    print(summary(plan, outcomes, purse.spent))
    waiting = sum(not one.is_ended for one in outcomes)
    if waiting:
        print(f"  {waiting} attempts wait: `resume {place.folder}` goes on with them")
    return 1 if waiting else 0


def _endpoint(plan: Plan, key: str | None) -> Endpoint:
    """Return the server to ask. Raises ValueError where the client library is missing: all other
    commands do without it."""
    try:
        from evaluator.generate.endpoint import OpenAIEndpoint
    except ImportError as error:
        raise ValueError(
            f"{error}: pip install -r requirements/generate.txt -c requirements/constraints.txt"
        ) from None
    return OpenAIEndpoint(
        base_url=plan.base_url,
        api_key=key or "none",
        is_streamed=plan.stream,
        limit_name=plan.max_tokens_name,
        headers=_headers(plan),
    )


def _headers(plan: Plan) -> dict[str, str]:
    """Return the headers of each request, from the variables that hold them. Raises ValueError."""
    missing = [variable for variable in plan.headers.values() if variable not in os.environ]
    if missing:
        raise ValueError(f"these variables hold no header: {', '.join(missing)}")
    return {name: os.environ[variable] for name, variable in plan.headers.items()}


def _site_token(plan: Plan) -> str | None:
    """Return the token of the site that judges; None where none does. Raises ValueError."""
    if plan.judge != SITE:
        return None
    name = plan.site_token_env or TOKEN_ENV
    if token := os.environ.get(name, "").strip():
        return token
    raise ValueError(f"the variable {name} holds no token: make one at {plan.site}/account")


@contextlib.contextmanager
def _judge(
    place: RunFiles, plan: Plan, purse: Purse, token: str | None
) -> Iterator[KernelJudge | None]:
    """Yield who judges, until the run is over; None where nobody does."""

    def is_over() -> bool:
        return purse.over is not None

    if not plan.is_judged:
        yield None
        return
    if plan.site and plan.judge == SITE:
        yield SiteJudge(
            site=site_of(plan.site, token),
            about=_about(plan),
            run=place.sessions.read_text().partition("\n")[0],
            is_over=is_over,
        )
        return
    judge = HostJudge(is_over)
    try:
        yield judge
    finally:
        judge.close()


@contextlib.contextmanager
def _shell(plan: Plan, purse: Purse, judge: KernelJudge | None) -> Iterator[Shell | None]:
    """Yield what runs agents' commands, until the run is over; None where they may run none."""
    if not plan.shell:
        yield None
        return
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="shell") as own:
        thread = judge.thread if isinstance(judge, HostJudge) else own
        yield SandboxedShell(is_over=lambda: purse.over is not None, thread=thread)


def _about(plan: Plan) -> dict[str, str]:
    """Return the fields of a submission that all kernels of a run have in common."""
    harness = AGENTIC if plan.harness == AGENTIC else "zero-shot"
    return {"model": plan.model[:MODEL_CHARS], "harness": harness, "hardware": plan.hardware}


def _status(arguments: argparse.Namespace) -> int:
    place = RunFiles(folder=arguments.out)
    plan = load_plan(place)
    outcomes = []
    for target, attempt in sorted(attempts(plan), key=lambda which: (which[0].number, which[1])):
        events = read_events(place.events(target, attempt))
        outcomes.append(one := outcome_of(events))
        found = ("fast" if one.fast else "right" if one.right else "") if plan.is_judged else ""
        detail = plain_text(str(events[-1].get("detail", "")), 200) if events else ""
        print(f"{target.folder} {attempt}: {' '.join(filter(None, (one.reason, found, detail)))}")
    print(summary(plan, outcomes, sum((one.spent for one in outcomes), Spend())))
    return 0 if all(one.is_ended for one in outcomes) else 1


def _pack(arguments: argparse.Namespace) -> int:
    place = RunFiles(folder=arguments.out)
    data = archive(place, load_plan(place))
    place.archive.write_bytes(data)
    print(f"{place.archive}: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")
    return 0


def _replay(arguments: argparse.Namespace) -> int:
    place = RunFiles(folder=arguments.out)
    if not place.archive.exists():
        raise ValueError(f"there is no {place.archive} to compare with: `pack` writes it")
    is_same = archive(place, load_plan(place)) == place.archive.read_bytes()
    print(f"the replay is {'the same as' if is_same else 'NOT the same as'} {place.archive}")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
