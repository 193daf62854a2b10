"""Runs nvcc with its device and its host pass side by side: `parallel_nvcc.py NVCC ARGUMENT...`.

nvcc itself says which commands it would run; here each starts as soon as the files that it reads
are there. The host pass names the module, and the device pass reads the name: it is given to both
instead. Whatever else nvcc may plan is left to nvcc.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

_SETTING = re.compile(r"(\w+)=(.*)")
_FILE = re.compile(r"tmpxft_[\w.-]+")
_NAME = re.compile(r'--gen_module_id_file --module_id_file_name "([^"]+)"')
# Both passes mention these; neither has to wait for the other to have written them.
_SHARED = (".module_id", ".stub.c")
# Between these it preprocesses for host and device; the host's compiler is the last.
_TOOLS = ["cudafe++", "cicc", "ptxas", "fatbinary"]
_COMMANDS = len(_TOOLS) + 3

Environment = dict[str, str]


def main(nvcc: str, arguments: list[str]) -> int:
    """Compile, and return the exit status that nvcc alone would have had."""
    with tempfile.TemporaryDirectory(prefix="nvcc-") as scratch:
        environment = {**os.environ, "TMPDIR": scratch}
        commands = plan(nvcc, arguments, environment)
        named = _NAME.search("\n".join(commands))
        if named and named[1].startswith(scratch) and _is_as_known(commands):
            name = _module_name(arguments)
            Path(named[1]).write_text(name)
            commands = [command.replace("--gen_module_id_file ", "") for command in commands]
            status = run(commands, environment)
            if status or _is_in_use(name, Path(scratch)):
                return status
    return subprocess.run([nvcc, *arguments], check=False).returncode


def plan(nvcc: str, arguments: list[str], environment: Environment) -> list[str]:
    """Return the commands that nvcc would run; add the settings that it would run them with."""
    told = subprocess.run(
        [nvcc, "-dryrun", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    commands = []
    for line in told.stderr.splitlines():
        text = line.removeprefix("#$ ")
        if setting := _SETTING.fullmatch(text):
            environment[setting[1]] = setting[2]
        elif text != line and not text.startswith(("-- ", "rm ")):  # the folder is removed whole
            commands.append(text)
    return commands


def run(commands: list[str], environment: Environment) -> int:
    """Run each command as soon as it can, the last after all others; return the first status that
    is not 0."""
    writers: dict[str, Future[int]] = {}
    started: list[Future[int]] = []

    def follow(command: str, before: list[Future[int]]) -> int:
        for earlier in before:
            if status := earlier.result():
                return status
        return subprocess.run(command, shell=True, env=environment, check=False).returncode

    with ThreadPoolExecutor(len(commands)) as pool:
        for command in commands:
            files = {file for file in _FILE.findall(command) if not file.endswith(_SHARED)}
            before = [writers[file] for file in files if file in writers]
            is_last = command is commands[-1]
            started.append(pool.submit(follow, command, list(started) if is_last else before))
            for file in files:
                writers.setdefault(file, started[-1])
    return next((status for status in (job.result() for job in started) if status), 0)


def _is_as_known(commands: list[str]) -> bool:
    tools = [Path(command.split(maxsplit=1)[0].strip('"')).name for command in commands]
    return len(tools) == _COMMANDS and [tool for tool in tools if tool in _TOOLS] == _TOOLS


def _module_name(arguments: list[str]) -> str:
    """Name the module as nvcc does: unique for a source and how it is compiled, and part of an
    identifier."""
    source = next(argument for argument in arguments if argument.endswith(".cu"))
    text = repr(arguments).encode() + Path(source).read_bytes()
    digest, word = hashlib.sha256(text).hexdigest(), re.sub(r"\W", "_", Path(source).name)
    return f"_{digest[:8]}_{len(word)}_{word}_{digest[8:16]}"


def _is_in_use(name: str, scratch: Path) -> bool:
    """Return whether the host pass took the name: were it to choose another, kernels would be
    missing."""
    return any(name in path.read_text(errors="replace") for path in scratch.glob("*.cudafe1.cpp"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
