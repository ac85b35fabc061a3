use super::page::{MAX_NAMED_POOLS, verdict};
use super::rules::{Finding, State};
use super::*;
use crate::console::fixtures::{Rows, pool_row};
use settings::pooler::parse_ini;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

fn context(rows: fn() -> Rows) -> Arc<HealthContext<Rows>> {
    let (reload, _) = mpsc::channel(1);
    let console = Arc::new(ConsoleContext::new(rows(), reload, "0.1.0"));
    let context = HealthContext::new(rows(), console, "0.1.0", Arc::new(|| 0));
    context.set_listening(true);
    Arc::new(context)
}

/// The whole answer to some bytes.
async fn ask(context: &Arc<HealthContext<Rows>>, request: &str) -> String {
    let (mut stream, theirs) = tokio::io::duplex(1 << 20);
    tokio::spawn(http::connection(theirs, Arc::clone(context)));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn get(context: &Arc<HealthContext<Rows>>, path: &str) -> String {
    ask(context, &format!("GET {path} HTTP/1.1\r\nHost: pooler\r\n\r\n")).await
}

fn config() -> Rows {
    let loaded = parse_ini(
        "[databases]\napp = host=127.0.0.1\n[pgbouncer]\npool_mode = transaction\nauth_type = trust\n",
    )
    .unwrap();
    Rows { config: Some(Arc::new(loaded.config)), ..Rows::default() }
}

#[tokio::test]
async fn a_healthy_pooler_is_live_ready_and_fine() {
    let context = context(|| Rows { pools: vec![pool_row("app", "web")], ..config() });
    for (path, state) in [("live", "live"), ("ready", "ready"), ("database", "fine")] {
        let answer = get(&context, &format!("/healthz/{path}")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains(&format!("\"state\":\"{state}\"")), "{answer}");
    }
    let metrics = get(&context, "/metrics").await;
    assert!(
        metrics.contains("holdfast_pooler_clients_waiting{database=\"app\",user=\"web\"} 0"),
        "{metrics}"
    );
    assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
}

#[tokio::test]
async fn a_pooler_that_stops_or_does_not_listen_yet_is_live_but_not_ready() {
    let stopping = context(|| Rows { shutting_down: true, ..Rows::default() });
    assert!(get(&stopping, "/healthz/live").await.starts_with("HTTP/1.1 200"));
    let answer = get(&stopping, "/healthz/ready").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("shutting down"), "{answer}");

    let starting = context(Rows::default);
    starting.set_listening(false);
    assert!(get(&starting, "/healthz/ready").await.contains("not listening yet"));
}

#[tokio::test]
async fn a_silent_data_plane_is_not_live() {
    let context = context(|| Rows { silent: true, ..Rows::default() });
    for path in ["/healthz/live", "/healthz/ready", "/healthz/database", "/metrics"] {
        let answer = get(&context, path).await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("not live"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_database_that_is_gone_is_named_with_cause_and_time() {
    let context = context(|| {
        let mut pool = pool_row("app", "web");
        pool.cl_waiting = 3;
        pool.failure = Some(("refused", "connection refused".to_owned(), Duration::from_secs(7)));
        Rows { pools: vec![pool], ..Rows::default() }
    });
    let answer = get(&context, "/healthz/database").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    for part in [
        "\"state\":\"database gone\"",
        "\"database\":\"app\"",
        "\"cause\":\"refused\"",
        "\"for_seconds\":7.0",
        "\"since\":\"20",
    ] {
        assert!(answer.contains(part), "{part} in {answer}");
    }
}

#[test]
fn a_saturated_pool_does_not_look_like_a_dead_one_and_the_list_is_bounded() {
    let finding = Finding {
        state: State::Saturated,
        database: "app".into(),
        user: "web".into(),
        cause: rules::BUSY,
        text: String::new(),
        since: Duration::ZERO,
        waiting: 1,
    };
    let page = verdict(State::Saturated, &vec![finding; MAX_NAMED_POOLS + 2], wall_clock());
    assert_eq!(page.status, hyper::StatusCode::OK);
    let value: serde_json::Value = serde_json::from_str(&page.text).unwrap();
    assert_eq!(value["state"], "saturated");
    assert_eq!(value["pools"].as_array().unwrap().len(), MAX_NAMED_POOLS);
    assert_eq!(value["pools_left_out"], 2);
}

#[tokio::test]
async fn unknown_pages_methods_and_oversized_heads_are_refused_clearly() {
    let context = context(Rows::default);
    let answer = get(&context, "/health").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("/healthz/live"), "{answer}");
    let answer = ask(&context, "POST /metrics HTTP/1.1\r\nHost: pooler\r\nContent-Length: 0\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 405") && answer.to_lowercase().contains("allow: get, head"),
        "{answer}"
    );
    let answer = ask(&context, "HEAD /healthz/live HTTP/1.1\r\nHost: pooler\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
    let answer =
        ask(&context, &format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES))).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_never_ends_is_given_up() {
    let context = context(Rows::default);
    let (mut stream, theirs) = tokio::io::duplex(1024);
    let connection = tokio::spawn(http::connection(theirs, Arc::clone(&context)));
    stream.write_all(b"GET /metr").await.unwrap();
    let before = Instant::now();
    connection.await.unwrap();
    assert!(before.elapsed() <= Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn a_new_overview_is_compared_with_one_from_some_seconds_ago() {
    let context = context(Rows::default);
    let overview = |clients| {
        let mut overview = crate::console::fixtures::overview(Vec::new());
        overview.clients = clients;
        Arc::new(overview)
    };
    let start = Instant::now();
    assert!(context.exchange(start, &overview(1)).is_none());
    assert!(context.exchange(start + COMPARE_AFTER / 2, &overview(2)).is_none());
    let compared = context.exchange(start + COMPARE_AFTER, &overview(3)).unwrap();
    assert_eq!(compared.clients, 1);
}
