"""What the fixtures tell, in no vendor's words.

A story says what a model does in one reply. Each vendor's module writes it down
in that vendor's own types; `meaning` says what must be read from it again.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Thought:
    pieces: tuple[str, ...]
    signature: str


@dataclass(frozen=True)
class Said:
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Cited:
    """Text whose whole length cites a page."""

    text: str
    url: str
    title: str


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    pieces: tuple[str, ...]

    @property
    def args(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Story:
    name: str
    parts: tuple = ()
    # stop, tool-calls, length or content-filter
    finish: str = "stop"
    # The vendor gives up: overloaded before the first word, broken after it.
    error: str | None = None
    # The bytes end before the reply does.
    cut: bool = False
    tokens: tuple[int, int] = (11, 7)


@dataclass
class Meaning:
    """What a reader must find. Compared whole by the tests of the models."""

    text: str = ""
    reasoning: str = ""
    calls: list = field(default_factory=list)
    sources: list = field(default_factory=list)
    finish: str | None = None
    usage: dict | None = None
    error: str | None = None


def meaning(story: Story, spans: bool, ids: bool = True) -> Meaning:
    """`spans`: this vendor says which text a citation belongs to."""
    found = Meaning()
    for part in story.parts:
        match part:
            case Thought(pieces):
                found.reasoning += "".join(pieces)
            case Said(pieces):
                found.text += "".join(pieces)
            case Cited(text, url, title):
                start = len(found.text)
                found.text += text
                span = [start, len(found.text)] if spans else None
                found.sources.append({"url": url, "title": title, "span": span})
            case Call(id, name, _):
                id = id if ids else None
                found.calls.append({"id": id, "name": name, "args": part.args})
    silent = not story.parts and story.finish == "content-filter"
    if story.error or story.cut or silent:
        # A reply that a filter ended before its first word is none.
        found.error = story.error or ("filtered" if silent else "cut")
        # A call counts once its reply is whole.
        found.calls = []
    else:
        found.finish = story.finish
        found.usage = {"input": story.tokens[0], "output": story.tokens[1]}
    return found


@dataclass(frozen=True)
class Refused:
    """A refusal before any stream: how a vendor says it, and what it means."""

    name: str
    status: int
    body: object
    meaning: str
    headers: dict = field(default_factory=dict)

    def as_json(self) -> dict:
        fields = {"status": self.status, "headers": self.headers, "body": self.body, "meaning": self.meaning}
        return {self.name: fields}


GREETING = Said(("Hel", "lo, W", "örld ☂", " and 🌍", "!"))
WEATHER = Call("call_A1", "get_weather", ('{"city"', ': "Zür', 'ich"}'))
CLOCK = Call("call_B2", "clock", ('{"zone":', '"UTC"}'))
LONG = '{"text":"naïve \\"quotes\\" \\n 🌍","n":[1,-3e2,null]}'

STORIES = (
    Story("text", (GREETING,)),
    Story("reasoning", (Thought(("First ", "I thínk", "."), "c2lnbmF0dXJlLTE="), Said(("Done", ".")))),
    Story("call", (WEATHER,), finish="tool-calls"),
    Story("parallel_calls", (Said(("Both.",)), WEATHER, CLOCK), finish="tool-calls"),
    Story("split_call", (Call("call_C3", "write_note", tuple(LONG)),), finish="tool-calls"),
    Story("call_without_arguments", (Call("call_D4", "ping", ()),), finish="tool-calls"),
    Story(
        "citations",
        (
            Said(("On 🌍: ",)),
            Cited("Zürich is dry.", "https://example.com/wetter?q=ü", "Wetter"),
            Said((" So ",)),
            Cited("go out", "https://example.org/", "Go"),
            Said((".",)),
        ),
    ),
    Story("empty", ()),
    Story("length", (Said(("It goes on and",)),), finish="length"),
    Story("filtered", (Said(("I ",)),), finish="content-filter"),
    Story("filtered_at_once", (), finish="content-filter"),
    Story("overloaded", (), error="overloaded"),
    Story("broken", (Said(("Half a sen",)),), error="broken"),
    Story("cut", (Said(("Half a ", "word")),), cut=True),
    Story("cut_in_call", (Call("call_E5", "get_weather", ('{"city"', ': "Zü')),), cut=True),
)
