"""Loaded by schemathesis (SCHEMATHESIS_HOOKS): appends each request that it has made to the file PAGODA_CASE_LOG, one JSON
object a line, with what the document's own schema says of the body ("valid"). What is wrong only in that it says a field twice,
by two names and equal, is not asked: it is taken, and no schema can say so."""

import json
import os
import threading

import jsonschema_rs
import schemathesis
from whole_schemas import with_whole_schemas

# Fields that ask for a grammar: two of them may ask for the same one.
_GRAMMARS = {"response_format", "structured_outputs", "json_schema", "format", "grammar", "ebnf", "regex", "guided_json",
             "guided_regex", "guided_choice", "guided_grammar", "text"}

_log = open(os.environ["PAGODA_CASE_LOG"], "a")
_lock = threading.Lock()
_bodies = {}


def _equal(a, b):
    return json.dumps(a) == json.dumps(b) or (a == b and bool not in (type(a), type(b)))


def _parts_of(rule):
    """The properties of which one at least must have a plain value."""
    return [part.get("properties", {}) for part in rule["not"].get("anyOf", [])]


class _Body:
    """What an operation takes."""

    def __init__(self, schema, components):
        self.validator = jsonschema_rs.Draft202012Validator({**schema, "components": components})
        name = schema.get("$ref", "").rsplit("/", 1)[-1]
        self.contradictions = components["x-contradictions"].get(name, {}).get("anyOf", [])

    def is_valid(self, body):
        try:
            return self.validator.is_valid(body)
        except ValueError:  # what JSON does not know, such as NaN
            return False

    def said_once(self, body):
        """The body without what the document calls contradictions, where both values are equal."""
        once = dict(body)
        if isinstance(once.get("options"), dict):
            once["options"] = dict(once["options"])
        for rule in self.contradictions:
            if "required" in rule:
                first, second = rule["required"]
                if first in once and second in once and _equal(once[first], once[second]):
                    del once[second]
            elif (names := [name for part in _parts_of(rule) for name in part]) and _GRAMMARS.issuperset(names):
                if all(name in once for name in names):
                    del once[names[-1]]
            elif '"options"' in json.dumps(rule) and isinstance(once.get("options"), dict):
                beside, within = (part["properties"] for part in rule["not"]["anyOf"])
                (option,) = within["options"]["properties"]
                values = [once[name] for name in beside if once.get(name) is not None]
                if option in once["options"] and values and all(_equal(once["options"][option], value) for value in values):
                    del once["options"][option]
        return once


def _body_of(operation):
    """Of an operation; None if it takes no body."""
    if operation.label not in _bodies:
        document = operation.schema.raw_schema
        body = document["paths"][operation.path][operation.method].get("requestBody")
        schema = body and body["content"]["application/json"]["schema"]
        _bodies[operation.label] = schema and _Body(schema, document["components"])
    return _bodies[operation.label]


def _is_valid(taken, sent):
    try:
        return taken.is_valid(json.loads(sent))
    except (ValueError, TypeError):
        return False


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Puts shared parts back: schemathesis cannot multiply references within properties with what a body must not be."""
    raw_schema["components"] = with_whole_schemas(raw_schema)["components"]


@schemathesis.hook
def filter_case(context, case):
    taken = _body_of(case.operation)
    if taken is None or not isinstance(case.body, dict):
        return True
    return taken.is_valid(case.body) or not taken.is_valid(taken.said_once(case.body))


@schemathesis.hook
def after_call(context, case, response):
    sent = response.request
    taken = _body_of(case.operation)
    entry = {"operation": case.operation.label, "method": sent.method, "status": response.status_code, "body": None}
    if taken is not None and sent.method == "POST":
        body = sent.body if isinstance(sent.body, str) else (sent.body or b"").decode(errors="replace")
        entry |= {"body": body, "valid": _is_valid(taken, sent.body)}
    if response.status_code >= 400 and response.headers["content-type"] == ["application/json"]:
        entry["error"] = response.json()["error"]
    with _lock:
        _log.write(json.dumps(entry) + "\n")
        _log.flush()
