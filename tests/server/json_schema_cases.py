"""JSON Schemas that answers are held to: name, schema, and how many tokens an answer may take.

Bounded, because a small model at temperature 1 wanders where it may: what has no end of its own is short.
"""


def obj(required=None, additional=False, **properties):
    """An object of these properties alone, all of them required unless said otherwise."""
    return {"type": "object", "properties": properties, "additionalProperties": additional,
            "required": list(properties) if required is None else required}


def array(items, least, most):
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def text(most, least=0):
    return {"type": "string", "minLength": least, "maxLength": most}


def integer(least, most):
    return {"type": "integer", "minimum": least, "maximum": most}


def number(least, most):
    """No more decimals than JSON texts of people have."""
    return {"type": "number", "minimum": least, "maximum": most, "multipleOf": 0.25}


WORD = {"type": "string", "pattern": "^[a-z]{1,10}$"}
NAME = text(16, 1)

PERSON = obj(name=NAME, age=integer(0, 130))
TREE = {"$ref": "#/$defs/node", "$defs": {"node": obj(
    ["value"], value=integer(0, 9), left={"$ref": "#/$defs/node"}, right={"$ref": "#/$defs/node"})}}
LINKED = {"$defs": {"list": {"anyOf": [{"type": "null"}, obj(head=integer(0, 9), tail={"$ref": "#/$defs/list"})]}},
          "$ref": "#/$defs/list"}
EXPRESSION = {
    "$defs": {"expression": {"anyOf": [integer(0, 99), obj(
        op={"enum": ["+", "-", "*"]}, left={"$ref": "#/$defs/expression"}, right={"$ref": "#/$defs/expression"})]}},
    "$ref": "#/$defs/expression"}

CASES = [
    # Scalars.
    ("boolean", {"type": "boolean"}, 32),
    ("null", {"type": "null"}, 32),
    ("integer", integer(-20, 1000), 32),
    ("integer_exclusive", {"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 12}, 32),
    ("integer_multiple", {"type": "integer", "minimum": 0, "maximum": 500, "multipleOf": 7}, 32),
    ("integer_negative", integer(-4000, -17), 32),
    ("number", number(-2.5, 99.75), 32),
    ("number_draft4_bounds", {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 3,
                              "exclusiveMinimum": True, "maximum": 9}, 32),
    ("short_text", text(12), 64),
    ("text_of_some_length", text(40, 20), 128),
    ("text_of_one_length", text(5, 5), 64),
    ("const_text", {"const": "a \"quoted\" \\ text\n"}, 64),
    ("const_object", {"const": {"a": [1, {"b": None}], "c": "é"}}, 64),
    # Enums.
    ("enum_texts", {"enum": ["red", "green", "dark red"]}, 32),
    ("enum_mixed", {"enum": [1, "1", None, True, [1], {"a": 1}]}, 32),
    ("enum_unicode", {"enum": ["日本語", "中文", "한국어", "Ελληνικά", "👋🏽", "naïve"]}, 64),
    ("enum_typed", {"type": "string", "enum": ["on", "off"]}, 32),
    # Patterns and formats.
    ("pattern_code", {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}, 64),
    ("pattern_phone", {"type": "string", "pattern": "^\\+?[0-9]{1,3} [0-9]{4,10}$"}, 64),
    ("pattern_alternatives", {"type": "string", "pattern": "^(yes|no|maybe [a-z]{1,8})$"}, 64),
    ("pattern_unicode", {"type": "string", "pattern": "^[α-ω]{1,6}$"}, 64),
    ("pattern_and_length", {"type": "string", "pattern": "^[a-z ]*$", "minLength": 3, "maxLength": 15}, 64),
    ("format_date", {"type": "string", "format": "date"}, 64),
    ("format_time", {"type": "string", "format": "time", "maxLength": 14}, 64),
    ("format_date_time", {"type": "string", "format": "date-time", "maxLength": 30}, 64),
    ("format_email", {"type": "string", "format": "email", "maxLength": 24}, 64),
    ("format_uuid", {"type": "string", "format": "uuid"}, 96),
    ("format_ipv4", {"type": "string", "format": "ipv4"}, 64),
    ("format_ipv6", {"type": "string", "format": "ipv6"}, 96),
    ("format_hostname", {"type": "string", "format": "hostname", "maxLength": 24}, 64),
    ("format_uri", {"type": "string", "format": "uri", "maxLength": 30}, 64),
    ("format_duration", {"type": "string", "format": "duration", "maxLength": 12}, 64),
    # Arrays.
    ("array_of_integers", array(integer(0, 9), 0, 5), 96),
    ("array_of_one_length", array({"type": "boolean"}, 3, 3), 96),
    ("array_of_enums", array({"enum": ["a", "b"]}, 1, 4), 96),
    ("array_of_arrays", array(array(integer(0, 99), 1, 3), 1, 3), 160),
    ("array_of_objects", array(PERSON, 1, 3), 256),
    ("tuple", {"type": "array", "prefixItems": [WORD, integer(0, 9), {"type": "boolean"}], "items": False,
               "minItems": 3}, 96),
    ("tuple_and_rest", {"type": "array", "prefixItems": [{"const": "sum"}], "items": integer(0, 99), "minItems": 2,
                        "maxItems": 5}, 96),
    ("tuple_draft7", {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array",
                      "items": [WORD, integer(0, 9)], "additionalItems": False, "minItems": 2}, 96),
    ("empty_array", {"type": "array", "maxItems": 0}, 32),
    # Objects.
    ("object", PERSON, 128),
    ("object_in_its_order", obj(zulu=integer(0, 9), alpha=integer(0, 9), mike=integer(0, 9)), 128),
    ("object_optional", obj(["a"], a=integer(0, 9), b=WORD, c={"type": "boolean"}), 128),
    ("object_all_optional", obj([], a=integer(0, 9), b={"type": "null"}), 128),
    ("object_nullable", obj(name={"type": ["string", "null"], "maxLength": 10}, age={"type": ["integer", "null"],
                                                                                     "minimum": 0, "maximum": 99}), 128),
    ("object_unicode_names", obj(**{"имя": text(8), "年齢": integer(0, 99), "👋": {"type": "boolean"}}), 160),
    ("object_awkward_names", obj(**{"a \"b\"": integer(0, 9), "": integer(0, 9), "\\": integer(0, 9)}), 128),
    ("object_nested", obj(a=obj(b=obj(c=obj(d=integer(0, 9))))), 160),
    ("object_map", {"type": "object", "patternProperties": {"^k[0-9]{1,2}$": integer(0, 99)},
                    "additionalProperties": False, "minProperties": 1, "maxProperties": 3}, 128),
    ("object_map_of_words", {"type": "object", "patternProperties": {"^[a-z]{1,5}$": {"type": "boolean"}},
                             "additionalProperties": False, "maxProperties": 3}, 128),
    ("object_named_and_mapped", {"type": "object", "properties": {"id": integer(0, 99)}, "required": ["id"],
                                 "patternProperties": {"^x-[a-z]{1,4}$": {"type": "boolean"}},
                                 "additionalProperties": False, "maxProperties": 3}, 128),
    ("object_one_of_two", {"type": "object", "properties": {"a": integer(0, 9), "b": integer(0, 9)},
                           "minProperties": 1, "maxProperties": 1, "additionalProperties": False}, 64),
    ("object_annotated", {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/point",
                          "title": "A point", "description": "In the plane", "type": "object",
                          "properties": {"x": {**number(0, 10), "default": 0, "examples": [1]}, "y": number(0, 10)},
                          "required": ["x", "y"], "additionalProperties": False}, 128),
    # Combinations and references.
    ("any_of", {"anyOf": [integer(0, 9), {"type": "boolean"}, obj(a=WORD)]}, 96),
    ("one_of_by_constant", {"oneOf": [obj(kind={"const": "circle"}, radius=integer(1, 9)),
                                      obj(kind={"const": "square"}, side=integer(1, 9))],
                            "discriminator": {"propertyName": "kind"}}, 128),
    ("all_of", {"allOf": [{"type": "object", "properties": {"a": integer(0, 99)}, "required": ["a"]},
                          {"type": "object", "properties": {"a": {"minimum": 5}, "b": {"type": "boolean"}},
                           "required": ["b"], "additionalProperties": False}]}, 128),
    ("types", {"type": ["boolean", "integer"], "minimum": 0, "maximum": 50}, 32),
    ("reference", {"type": "object", "properties": {"from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place"}},
                   "required": ["from", "to"], "additionalProperties": False,
                   "$defs": {"place": obj(city=NAME, code={"type": "string", "pattern": "^[A-Z]{2}$"})}}, 256),
    ("reference_definitions", {"definitions": {"digit": integer(0, 9)}, **array({"$ref": "#/definitions/digit"}, 2, 4)},
     96),
    # Recursion; it ends by itself, not always soon.
    ("tree", TREE, 512),
    ("linked_list", LINKED, 512),
    ("expression", EXPRESSION, 512),
    ("menu", {"$ref": "#/$defs/item", "$defs": {"item": obj(
        ["label"], label=WORD, children=array({"$ref": "#/$defs/item"}, 0, 2))}}, 512),
    # As applications have them.
    ("invoice", obj(number={"type": "string", "pattern": "^INV-[0-9]{4}$"}, date={"type": "string", "format": "date"},
                    lines=array(obj(item=NAME, quantity=integer(1, 99), price=number(0, 1000)), 1, 2),
                    paid={"type": "boolean"}), 400),
    ("tool_call", obj(tool={"enum": ["search", "weather", "none"]}, arguments=obj(query=text(30)), confidence=number(0, 1)),
     200),
    ("classification", obj(label={"enum": ["positive", "neutral", "negative"]}, reasons=array(text(30), 0, 2)), 256),
    ("recipe", obj(title=text(30, 3), minutes=integer(1, 240), steps=array(text(40, 5), 1, 3),
                   vegan={"type": "boolean"}), 400),
    ("address_book", array(obj(["name", "email"], name=NAME, email={"type": "string", "format": "email",
                                                                    "maxLength": 20},
                               phones=array({"type": "string", "pattern": "^[0-9]{3,8}$"}, 0, 2)), 1, 2), 400),
    ("geojson", obj(type={"const": "Feature"}, geometry=obj(type={"const": "Point"}, coordinates={
        "type": "array", "prefixItems": [number(-180, 180), number(-90, 90)], "items": False, "minItems": 2})), 200),
]
