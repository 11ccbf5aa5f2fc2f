"""Loaded by schemathesis (SCHEMATHESIS_HOOKS): appends each request that it has made to the file PAGODA_CASE_LOG, one JSON
object a line, with what the document's own schema says of the body."""

import json
import os
import threading

import jsonschema_rs
import schemathesis

_log = open(os.environ["PAGODA_CASE_LOG"], "a")
_lock = threading.Lock()
_validators = {}


def _validator(operation):
    """Of an operation's body; None if it has none."""
    if operation.label not in _validators:
        document = operation.schema.raw_schema
        body = document["paths"][operation.path][operation.method].get("requestBody")
        schema = body and {**body["content"]["application/json"]["schema"], "components": document["components"]}
        _validators[operation.label] = schema and jsonschema_rs.Draft202012Validator(schema)
    return _validators[operation.label]


def _is_valid(validator, body):
    try:
        return validator.is_valid(json.loads(body))
    except (ValueError, TypeError):
        return False


@schemathesis.hook
def after_call(context, case, response):
    sent = response.request
    validator = _validator(case.operation)
    entry = {"operation": case.operation.label, "method": sent.method, "status": response.status_code, "body": None}
    if validator is not None and sent.method == "POST":
        body = sent.body if isinstance(sent.body, str) else (sent.body or b"").decode(errors="replace")
        entry |= {"body": body, "valid": _is_valid(validator, sent.body)}
    if response.status_code >= 400 and response.headers["content-type"] == ["application/json"]:
        entry["error"] = response.json()["error"]
    with _lock:
        _log.write(json.dumps(entry) + "\n")
        _log.flush()
