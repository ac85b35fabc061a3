//! Generations of pools: the manifest, and the bytes of a pool.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use trust::BlobHash;
use trust::api::{ErrorCode, PoolsAnswer};

use crate::answer::{Refusal, json};
use crate::routes::{Answer, Context};

/// A manifest may be kept, and is asked about again each time.
const ASKED_AGAIN: HeaderValue = HeaderValue::from_static("private, no-cache");
/// Bytes that have their hash for a name never change.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");

pub(crate) async fn manifest(context: Context) -> Answer {
    let Some(served) = context.app.pools.current() else {
        let cause = "no generation of pools is known yet: come back";
        return Err(Refusal::later(ErrorCode::Unavailable, cause, 1_000));
    };
    let age = served.age(context.now_ms);
    let generation = &served.generation;
    let tag = format!("\"{}{}\"", generation.manifest().number, if age.stale { "-stale" } else { "" });
    let answer = if context.has(&tag) {
        not_changed()
    } else {
        json(
            StatusCode::OK,
            &PoolsAnswer {
                manifest: generation.text().to_owned(),
                confirmed_at_ms: generation.confirmed_at_ms(),
                stale: age.stale,
                cause: age.cause,
                now_ms: context.now_ms,
            },
        )
    };
    Ok(kept(answer, &tag, ASKED_AGAIN))
}

pub(crate) async fn blob(context: Context) -> Answer {
    let hash: BlobHash = context.id("hash")?;
    let bytes = context.app.pools.current().and_then(|served| served.blob(hash));
    let Some(bytes) = bytes else {
        return Err(Refusal::new(ErrorCode::NotFound, "no pool of the last generations has this name"));
    };
    let tag = format!("\"{hash}\"");
    if context.has(&tag) {
        return Ok(kept(not_changed(), &tag, IMMUTABLE));
    }
    let mut answer = Response::new(Body::from(bytes.to_vec()));
    let binary = HeaderValue::from_static("application/octet-stream");
    answer.headers_mut().insert(header::CONTENT_TYPE, binary);
    Ok(kept(answer, &tag, IMMUTABLE))
}

fn not_changed() -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NOT_MODIFIED;
    answer
}

fn kept(mut answer: Response<Body>, tag: &str, how: HeaderValue) -> Response<Body> {
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, how);
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    answer
}
