"""/openapi.json without references between its schemas, for what walks through a request's fields."""


def _whole(value, schemas):
    if isinstance(value, list):
        return [_whole(inner, schemas) for inner in value]
    if not isinstance(value, dict):
        return value
    whole = {key: _whole(inner, schemas) for key, inner in value.items()}
    name = str(whole.get("$ref", "")).removeprefix("#/components/schemas/")
    if name in schemas:
        del whole["$ref"]
        whole |= {**_whole(schemas[name], schemas), **whole}
    return whole


def with_whole_schemas(document):
    """The document with each shared part of a schema in the places that refer to it."""
    schemas = document["components"]["schemas"]
    whole = {name: _whole(schema, schemas) for name, schema in schemas.items()}
    return {**document, "components": {**document["components"], "schemas": whole}}
