//! `docs/openapi.json`: made from the table of routes and from real requests and answers, so that it cannot say anything else
//! than what is served.

mod examples;

use serde_json::{Map, Value, json};
use trust::api::{ErrorAnswer, ErrorCode};

use crate::access::Access;
use crate::routes::{Route, routes};

/// The description of this api (OpenAPI 3.1).
#[must_use]
pub fn openapi() -> Value {
    let mut paths = Map::new();
    for route in routes() {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.as_str().to_lowercase(), operation(&route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "holdfast api",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Identifiers are UUIDs; keys, hashes and signatures are base64url without padding; times are \
                ms since 1970; amounts are bytes. TLS is pinned to the network: the certificate's chain ends in one \
                whose Ed25519 key has the network's name as its SHA-256.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "client": {
                    "type": "http",
                    "scheme": "Holdfast",
                    "description": "A client's token. With it goes the header holdfast-proof: TIME.SIGNATURE, the time in ms \
                        since 1970, the signature by the client's Ed25519 key over 'holdfast request 1', a zero byte, the 32 \
                        bytes of the network's name, the time (8 bytes, big-endian), the SHA-256 of the body, the method, a \
                        space, and the path with its query.",
                },
                "account": { "type": "http", "scheme": "Bearer", "description": "From POST /v1/session." },
            },
            "schemas": { "Error": schema(&refusal()) },
            "responses": {
                "Refusal": {
                    "description": "A refusal. 'code' is for programs, 'cause' for people; 'retry_after_ms' is there if \
                        trying again may help.",
                    "content": { "application/json": {
                        "schema": { "$ref": "#/components/schemas/Error" },
                        "example": refusal(),
                    } },
                },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let examples = examples::of(&route.method, route.path);
    let mut operation = json!({
        "summary": route.summary,
        "security": security(route.access),
        "responses": {
            "200": if examples.bytes { bytes() } else { content("Done", &examples.answer) },
            "default": { "$ref": "#/components/responses/Refusal" },
        },
    });
    if examples.tagged {
        operation["responses"]["304"] =
            json!({ "description": "The answer with the tag of If-None-Match still holds" });
        operation["responses"]["200"]["headers"] = json!({ "etag": { "schema": { "type": "string" } } });
    }
    if let Some(request) = &examples.request {
        let mut body = content("", request);
        body["required"] = true.into();
        if let Some(body) = body.as_object_mut() {
            body.remove("description");
        }
        operation["requestBody"] = body;
    }
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    parameters.extend(examples.query.iter().map(|(name, kind, required)| {
        json!({ "name": name, "in": "query", "required": required, "schema": { "type": kind } })
    }));
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

fn security(access: Access) -> Value {
    match access {
        Access::Public => json!([]),
        Access::Client(_) | Access::Renewing => json!([{ "client": [] }]),
        Access::Account | Access::Operator => json!([{ "account": [] }]),
        Access::ClientOrAccount(_) => json!([{ "client": [] }, { "account": [] }]),
    }
}

fn content(description: &str, example: &Value) -> Value {
    json!({
        "description": description,
        "content": { "application/json": { "schema": schema(example), "example": example } },
    })
}

fn bytes() -> Value {
    let schema = json!({ "type": "string", "format": "binary" });
    json!({ "description": "Done", "content": { "application/octet-stream": { "schema": schema } } })
}

/// The shape of a value. Examples have all fields, also those that may be missing.
fn schema(example: &Value) -> Value {
    match example {
        Value::Null => json!({}),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(_) => json!({ "type": "integer" }),
        Value::String(_) => json!({ "type": "string" }),
        Value::Array(items) => json!({ "type": "array", "items": items.first().map(schema) }),
        Value::Object(fields) => {
            let properties: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), schema(value))).collect();
            json!({ "type": "object", "properties": properties })
        }
    }
}

fn refusal() -> Value {
    let cause = "what is left of the account's grants is held by open contracts".to_owned();
    json!(ErrorAnswer { code: ErrorCode::GrantSpent, cause, retry_after_ms: Some(60_000) })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// `UPDATE_OPENAPI=1 cargo test -p holdfast-api openapi` writes it.
    #[test]
    fn the_file_in_docs_lists_exactly_the_routes_that_stand() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let text = serde_json::to_string_pretty(&openapi()).unwrap() + "\n";
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(written, text, "docs/openapi.json is not what this program serves");
        let document: Value = serde_json::from_str(&written).unwrap();
        for route in routes() {
            let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
            assert_eq!(operation["summary"], route.summary, "{} {}", route.method, route.path);
        }
        let operations = document["paths"].as_object().unwrap().values();
        let count: usize = operations.map(|path| path.as_object().unwrap().len()).sum();
        assert_eq!(count, routes().len());
    }

    #[test]
    fn each_route_has_an_example_of_its_answer_and_each_that_takes_a_body_one_of_that() {
        for route in routes() {
            let examples = examples::of(&route.method, route.path);
            assert!(!examples.answer.is_null() || examples.bytes, "{} {}", route.method, route.path);
        }
    }
}
