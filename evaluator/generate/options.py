"""Reads the command line into a plan."""

from __future__ import annotations

import argparse
import functools
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evaluator import __version__
from evaluator.generate.attempt_loop import Choices
from evaluator.generate.budget import Price
from evaluator.generate.exchange import Sampling, canonical
from evaluator.generate.plan import AGENTIC, HARNESSES, OURS, PKB, Plan, Target
from evaluator.generate.prompting import recipe_digest
from evaluator.generate.site_judge import site_of
from evaluator.generate.statuses import LIMIT_NAMES
from evaluator.messages.job import Backend, Device, Dtype, Placement
from problems.prompt import DIALECTS
from problems.topology import FIXTURES, class_called

KEY_ENV = "OPENAI_API_KEY"
TOKEN_ENV = "PKB_TOKEN"
SITE = "site"
RANKS = (8, 4, 2)  # on which problems are judged
_OWN = {"model", "messages", "tools", "stream", "n", *LIMIT_NAMES}


def parser() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    root = argparse.ArgumentParser(
        prog="python -m evaluator.generate", description="Ask a language model for kernels."
    )
    commands = root.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="begin a run in a new folder")
    run.add_argument("out", type=Path, help="the folder that keeps all of the run")
    _what_to_ask(run)
    _how_to_try(run)
    _may_change(run)
    resume = commands.add_parser("resume", help="go on with a run, which loses nothing by a crash")
    resume.add_argument("out", type=Path)
    _may_change(resume)
    for name, help_text in (
        ("status", "say how each attempt stands"),
        ("pack", "write OUT.tar.gz, of the format pkb-attempts/1"),
        ("replay", "make the archive again, without network, and compare it with OUT.tar.gz"),
    ):
        commands.add_parser(name, help=help_text).add_argument("out", type=Path)
    return root


def _what_to_ask(run: argparse.ArgumentParser) -> None:
    add = run.add_argument
    add("--model", required=True, help="as the server calls it")
    add("--problems", default="all", help="all, numbers or slugs with commas, or category:NAME")
    add("--backend", choices=sorted(DIALECTS), default="pytorch", help="the language")
    add("--harness", choices=HARNESSES, default="zero-shot")
    add("--samples", type=int, help="attempts a problem (default 1, repeated 3)")
    add("--examples", type=int, choices=(0, 1), help="show an example (one-shot does)")
    add("--steps", type=int, default=20, help="most revisions of an agentic attempt")
    add("--shell", action="store_true", help="let an agent run commands, in a sandbox")
    add("--temperature", type=float)
    add("--seed", type=int, help="of the first attempt; it goes up by one from attempt to attempt")
    add("--reasoning-effort", help="low, medium, high, where the server knows it")
    add("--top-p", type=float)
    add("--top-k", type=int, help="where the server knows it")
    add("--min-p", type=float, help="where the server knows it")
    add("--extra", type=_extra, metavar="JSON", help="an object that is added to each request")
    add("--max-output-tokens", type=_count, default=32768, help="of one answer (default 32768)")
    add("--prompt-style", choices=(OURS, PKB), default=OURS, help="PKB's own form of a prompt")
    add("--print-prompt", action="store_true", help="print what a model gets, and ask nothing")


def _how_to_try(run: argparse.ArgumentParser) -> None:
    add = run.add_argument
    add("--hardware", default="cpu", help="cpu, h200x4, or a title as '8 x NVIDIA B200'")
    add("--world-size", type=int, help="ranks (default: the hardware's, 2 on processors)")
    add("--size", help="named size of the problem (default standard, tiny on processors)")
    add("--dtype", type=Dtype, choices=list(Dtype), help="default bfloat16, float32 on processors")
    add(
        "--judge",
        choices=("local", SITE, "none"),
        default="local",
        help="who judges: this host, the hosts of --site by practice runs, nobody",
    )
    add(
        "--placement",
        type=Placement,
        choices=list(Placement),
        help="full: a GPU for each rank; shared: all on the first, checked and not timed "
        "(default: full, but shared for Triton on processors)",
    )


def _may_change(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--base-url", help="of the server, such as http://127.0.0.1:8000/v1; OpenAI's where absent")
    add("--api-key-env", help=f"the variable that holds the key (default {KEY_ENV})")
    add("--provider", help="who serves the model, for the manifest (default: by --base-url)")
    add(
        "--max-tokens-name",
        choices=LIMIT_NAMES,
        help="the server's name for the limit of output (default: found out)",
    )
    add(
        "--header",
        dest="headers",
        type=_header,
        action="append",
        metavar="NAME=VARIABLE",
        help="a header of each request; the variable holds its value, which is kept nowhere",
    )
    add(
        "--stream",
        action="store_const",
        const=True,
        help="have answers sent in pieces, where a proxy cuts silent connections",
    )
    add("--site", help="the leaderboard whose hosts judge, https://...")
    add("--site-token-env", help=f"the variable that holds its token (default {TOKEN_ENV})")
    add("--parallel", type=int, help="attempts at a time (default 1)")
    add("--timeout-s", type=float, help="of one answer (default 1800)")
    add("--budget-usd", type=float, help="needs --price")
    add("--budget-tokens", type=_count, help="input and output together; 20e6 is understood")
    add("--budget-hours", type=float)
    add("--price", type=_price, metavar="INPUT,CACHED,OUTPUT", help="USD per million tokens")


def plan_of(arguments: argparse.Namespace) -> Plan:
    """Return the plan of a new run. Raises ValueError for what does not fit together."""
    _fill_in(arguments)
    is_one_shot = arguments.harness == "one-shot"
    device = Device.CPU if arguments.hardware == "cpu" else Device.CUDA
    backend = Backend(arguments.backend)
    is_interpreted = device is Device.CPU and backend is Backend.TRITON
    plan = Plan(
        model=arguments.model,
        harness=arguments.harness,
        backend=backend,
        targets=_targets(arguments),
        samples=arguments.samples or (3 if arguments.harness == "repeated" else 1),
        examples=int(is_one_shot) if arguments.examples is None else arguments.examples,
        steps=arguments.steps if arguments.harness == AGENTIC else 1,
        hardware=arguments.hardware,
        world_size=arguments.world_size,
        size=arguments.size,
        dtype=arguments.dtype,
        device=device,
        judge=arguments.judge,
        sampling=Sampling(
            max_output_tokens=arguments.max_output_tokens,
            temperature=arguments.temperature,
            seed=arguments.seed,
            reasoning_effort=arguments.reasoning_effort,
            top_p=arguments.top_p,
            top_k=arguments.top_k,
            min_p=arguments.min_p,
            extra=arguments.extra,
        ),
        recipe_sha256="",
        software_version=__version__,
        shell=arguments.shell,
        prompt_style=arguments.prompt_style,
        placement=arguments.placement or (Placement.SHARED if is_interpreted else Placement.FULL),
    )
    plan = changed(replace(plan, recipe_sha256=recipe_digest(plan)), arguments)
    _check(plan)
    return plan


def _fill_in(arguments: argparse.Namespace) -> None:
    """Set what was left out to what counts on that hardware. Raises ValueError for hardware that is
    not known."""
    is_cpu = arguments.hardware == "cpu"
    most = 2 if is_cpu else class_called(arguments.hardware).ranks
    ranks = next((ranks for ranks in RANKS if ranks <= most), most)
    arguments.world_size = arguments.world_size or ranks
    arguments.size = arguments.size or ("tiny" if is_cpu else "standard")
    arguments.dtype = arguments.dtype or (Dtype.FLOAT32 if is_cpu else Dtype.BFLOAT16)


def changed(plan: Plan, arguments: argparse.Namespace) -> Plan:
    """Return the plan with what may change while a run is made. Raises ValueError."""
    names = (
        *("base_url", "api_key_env", "stream", "site", "site_token_env"),
        *("parallel", "timeout_s", "price", "provider", "max_tokens_name"),
    )
    given = {name: getattr(arguments, name) for name in names}
    given["headers"] = dict(arguments.headers) if arguments.headers else None
    budget = {name: getattr(arguments, f"budget_{name}") for name in ("usd", "tokens", "hours")}
    plan = replace(
        plan,
        **{name: value for name, value in given.items() if value is not None},
        budget=replace(plan.budget, **{n: v for n, v in budget.items() if v is not None}),
    )
    if plan.budget.usd is not None and plan.price is None:
        raise ValueError(
            "--budget-usd needs --price INPUT,CACHED,OUTPUT, in USD per million tokens"
        )
    if plan.base_url and "@" in urlsplit(plan.base_url).netloc:
        raise ValueError(
            "--base-url holds a name or password, which would be kept: use --api-key-env"
        )
    if plan.site:
        site_of(plan.site, None)
    if not 1 <= plan.parallel <= 256 or plan.timeout_s <= 0:
        raise ValueError("--parallel must be 1 to 256, and --timeout-s more than 0")
    return plan


@functools.cache
def catalogue() -> list[dict[str, Any]]:
    """Return every problem as the site has it."""
    entries: list[dict[str, Any]] = json.loads((FIXTURES / "problems.json").read_text())["problems"]
    return entries


def _targets(arguments: argparse.Namespace) -> tuple[Target, ...]:
    """Return the problems that are named. Raises ValueError for what is none."""
    words, known = arguments.problems, catalogue()
    if words == "all":
        chosen = known
    elif words.startswith("category:"):
        chosen = [entry for entry in known if entry["category"] == words.partition(":")[2]]
    else:
        names = {word.strip() for word in words.split(",")}
        chosen = [entry for entry in known if names & {str(entry["number"]), entry["slug"]}]
        if len(chosen) != len(names):
            raise ValueError(f"--problems {words} names some that there are not, or one twice")
    if not chosen:
        raise ValueError(f"--problems {words} names none")
    return tuple(
        _target(entry, arguments) for entry in sorted(chosen, key=lambda e: int(e["number"]))
    )


def _target(entry: Mapping[str, Any], arguments: argparse.Namespace) -> Target:
    """Return a problem with what an agent may choose: no more ranks and no larger inputs than the
    run's own."""
    sizes, own = entry["sizes"], entry["sizes"].get(arguments.size)
    if own is None:
        raise ValueError(f"{entry['slug']} has no size {arguments.size}: use {', '.join(sizes)}")
    area = {name: size["m"] * size["n"] for name, size in sizes.items()}
    choices = Choices(
        sizes=tuple(name for name in sizes if area[name] <= area[arguments.size]),
        dtypes=tuple(entry["tolerances"]),
        world_sizes=tuple(n for n in entry["world_sizes"] if n <= arguments.world_size),
    )
    return Target(number=entry["number"], slug=entry["slug"], choices=choices)


def _check(plan: Plan) -> None:
    if plan.harness == "one-shot" and not plan.examples:
        raise ValueError("the harness one-shot shows an example: say zero-shot")
    if plan.harness == "zero-shot" and plan.examples:
        raise ValueError("the harness zero-shot shows no example: say one-shot")
    if plan.harness in ("zero-shot", "one-shot") and plan.samples > 1:
        raise ValueError("several samples are the harness repeated")
    if plan.prompt_style == PKB and plan.harness == AGENTIC:
        raise ValueError(
            "--prompt-style pkb asks for one answer: use zero-shot, one-shot, repeated"
        )
    if plan.shell and plan.harness != AGENTIC:
        raise ValueError(f"--shell is a tool of the harness {AGENTIC}")
    if plan.samples < 1 or plan.steps < 1 or plan.sampling.max_output_tokens < 1:
        raise ValueError("--samples, --steps and --max-output-tokens must be 1 or more")
    if plan.judge == SITE and not plan.site:
        raise ValueError(f"--judge {SITE} needs --site https://...")
    # Only here an interpreter runs Triton.
    on_processors = (Backend.PYTORCH, *([] if plan.judge == SITE else [Backend.TRITON]))
    if plan.is_judged and plan.device is Device.CPU and plan.backend not in on_processors:
        raise ValueError(f"{plan.backend} is judged on GPUs: name --hardware, or say --judge none")


def _count(text: str) -> int:
    """Read a whole number, also as 20e6."""
    return int(float(text))


def _extra(text: str) -> str:
    """Read a JSON object that is added to requests; what has an option of its own is none of it."""
    told = json.loads(text)
    if not isinstance(told, dict) or _OWN & told.keys():
        raise argparse.ArgumentTypeError(f"a JSON object without {', '.join(sorted(_OWN))}")
    return canonical(told)


def _header(text: str) -> tuple[str, str]:
    """Read a header's name and the variable that holds its value."""
    name, _, variable = text.partition("=")
    if not re.fullmatch(r"[\w-]+", name, re.ASCII) or not variable.isidentifier():
        raise argparse.ArgumentTypeError("write NAME=VARIABLE, such as X-Team=TEAM_KEY")
    return name, variable


def _price(text: str) -> Price:
    """Read three prices; they are those of today."""
    first, cached, last = (float(word) for word in text.split(","))
    if min(first, cached, last) < 0:
        raise ValueError("prices are 0 or more")
    return Price(input=first, cached=cached, output=last, date=datetime.now(UTC).date().isoformat())
