"""Judges JSON against a shape of botocore's service model.

botocore's own validator has the first word. It takes patterns, lists of allowed
words and unknown fields as they come, so those are checked here.
"""

import base64
import binascii
import re
from functools import cache

import botocore.session
from botocore.validate import ParamValidator


@cache
def model(service: str = "bedrock-runtime"):
    return botocore.session.get_session().get_service_model(service)


def check(shape, value) -> list[str]:
    """What is wrong with a value as it stands in a JSON body."""
    complaints: list[str] = []
    decoded = _walk(shape, value, "body", complaints)
    report = ParamValidator().validate(decoded, shape)
    if report.has_errors():
        complaints.append(report.generate_report())
    return complaints


def _walk(shape, value, where: str, complaints: list[str]):
    if getattr(shape, "is_document_type", False):
        return value
    match shape.type_name, value:
        case "structure", dict():
            unknown = value.keys() - shape.members.keys()
            complaints.extend(f"{where}.{name}: no such field" for name in sorted(unknown))
            return {
                name: _walk(shape.members[name], inner, f"{where}.{name}", complaints)
                for name, inner in value.items()
                if name in shape.members
            }
        case "list", list():
            return [_walk(shape.member, inner, f"{where}[{n}]", complaints) for n, inner in enumerate(value)]
        case "map", dict():
            return {name: _walk(shape.value, inner, f"{where}.{name}", complaints) for name, inner in value.items()}
        case "blob", str():
            try:
                return base64.b64decode(value, validate=True)
            except binascii.Error:
                complaints.append(f"{where}: not base64")
                return b"?"
        case "string", str():
            _check_text(shape, value, where, complaints)
            return value
        case "float" | "double", bool():
            complaints.append(f"{where}: not a number")
            return 0.0
        case "float" | "double", (int() | float()) as number:
            _check_range(shape, number, where, complaints)
            return float(number)
        case _:
            return value


def _check_text(shape, value: str, where: str, complaints: list[str]):
    allowed = shape.metadata.get("enum")
    if allowed and value not in allowed:
        complaints.append(f"{where}: {value!r} is none of {allowed}")
    pattern = shape.metadata.get("pattern")
    if pattern and not re.fullmatch(pattern, value):
        complaints.append(f"{where}: {value!r} does not match {pattern}")
    longest = shape.metadata.get("max")
    if longest is not None and len(value) > longest:
        complaints.append(f"{where}: longer than {longest}")


def _check_range(shape, value: float, where: str, complaints: list[str]):
    most = shape.metadata.get("max")
    if most is not None and value > most:
        complaints.append(f"{where}: more than {most}")
