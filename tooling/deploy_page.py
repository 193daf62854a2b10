"""Read the shell blocks of docs/deploy.md, each with its machine and whether the test runs it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tooling import places

PAGE = places.ROOT / "docs" / "deploy.md"
# The chapter of the blocks that are run on each judging host; all others are the site's.
ON_HOSTS = "A judging host"
_BLOCK = re.compile(
    r"^## (?P<chapter>[^\n]+)$"
    r"|^\*\*(?P<title>[^*]+)\.\*\*"
    r"|(?:^<!-- not in the test: (?P<reason>[^\n]+) -->\n)?^```sh\n(?P<script>.*?)^```$",
    re.M | re.S,
)
_EXPORT = re.compile(r"^export (\w+)=(.*)$", re.M)


@dataclass(frozen=True, kw_only=True)
class Block:
    """Hold a block; `skipped` says why the test leaves it out, and is empty where it does not."""

    chapter: str
    title: str
    script: str
    skipped: str

    @property
    def is_on_hosts(self) -> bool:
        return self.chapter == ON_HOSTS

    @property
    def exports(self) -> dict[str, str]:
        """Return the names that the block sets for those after it."""
        return dict(_EXPORT.findall(self.script))


def blocks(text: str | None = None) -> list[Block]:
    """Return the blocks of the page in its order."""
    found, chapter, title = [], "", ""
    for match in _BLOCK.finditer(PAGE.read_text() if text is None else text):
        if match["chapter"]:
            chapter = title = match["chapter"]
        elif match["title"]:
            title = match["title"]
        else:
            script, skipped = match["script"], match["reason"] or ""
            found.append(Block(chapter=chapter, title=title, script=script, skipped=skipped))
    return found


def packages(found: list[Block]) -> list[str]:
    """Return the Debian packages that the blocks of the test install."""
    scripts = "\n".join(block.script.replace("\\\n", " ") for block in found if not block.skipped)
    lines = re.findall(r"^apt-get install (.*)$", scripts, re.M)
    return sorted({word for line in lines for word in line.split() if word[0] != "-"})


def named(script: str, names: Mapping[str, str]) -> str:
    """Return a script with other values for the names that it exports."""

    def other(match: re.Match[str]) -> str:
        return f"export {match[1]}={names[match[1]]}" if match[1] in names else match[0]

    return _EXPORT.sub(other, script)
