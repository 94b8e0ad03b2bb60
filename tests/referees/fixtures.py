"""Writes replies of all vendors, built from the vendors' own types.

    python tests/referees/fixtures.py <folder>

Each story becomes one file per vendor. `meaning.json` says what must be read
from it: that comes from the story and not from any decoder of ours.
`refusals.json` has what the vendor answers instead of a stream.
"""

import dataclasses
import json
import sys
from pathlib import Path

import of_anthropic
import of_bedrock
import of_chat
import of_gemini
import of_responses
import signatures
from stories import STORIES

VENDORS = (of_chat, of_responses, of_anthropic, of_gemini, of_bedrock)


def _write_json(file: Path, value: dict):
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
    file.write_text(text + "\n")


def write(folder: Path):
    for vendor in VENDORS:
        room = folder / vendor.FOLDER
        room.mkdir(parents=True, exist_ok=True)
        meanings = {}
        for story in STORIES:
            (room / f"{story.name}.{vendor.SUFFIX}").write_bytes(b"".join(vendor.render(story)))
            meanings[story.name] = dataclasses.asdict(vendor.expect(story))
        _write_json(room / "meaning.json", meanings)
        refusals = {}
        for refused in vendor.refusals():
            refusals |= refused.as_json()
        _write_json(room / "refusals.json", refusals)
    (folder / "bedrock" / "signatures.json").write_text(signatures.write())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(Path(sys.argv[1]))
