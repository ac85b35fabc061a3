use super::fixtures::{Rows, pool_row};
use super::*;
use pgwire::frame;
use pgwire::message::{ErrorFields, frontend, tag};
use pooling::seam::ClientAddress;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// What a client sees of an answer.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) columns: Vec<(String, u32)>,
    pub(crate) rows: Vec<Vec<Option<String>>>,
    pub(crate) tags: Vec<String>,
    pub(crate) notices: Vec<String>,
    pub(crate) errors: Vec<(String, String)>,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) ready: usize,
    pub(crate) empty: usize,
}

impl Parsed {
    pub(crate) fn value(&self, row: usize, column: &str) -> Option<&str> {
        let at = self.columns.iter().position(|(name, _)| name == column).unwrap();
        self.rows[row][at].as_deref()
    }
}

/// Reads whole messages with no help of the builders.
pub(crate) fn parse(mut bytes: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    while let Some(head) = frame::head(bytes, u32::MAX).unwrap() {
        let (message, rest) = bytes.split_at(head.total);
        bytes = rest;
        let body = &message[frame::HEADER_BYTES..];
        match head.tag {
            tag::ROW_DESCRIPTION => parsed.columns = columns(body),
            tag::DATA_ROW => parsed.rows.push(row(body)),
            tag::COMMAND_COMPLETE => parsed.tags.push(texts(body).remove(0)),
            tag::NOTICE_RESPONSE => parsed.notices.push(ErrorFields::parse(body).message),
            tag::ERROR_RESPONSE => {
                let fields = ErrorFields::parse(body);
                parsed.errors.push((fields.code, fields.message));
            }
            tag::PARAMETER_STATUS => {
                let mut texts = texts(body);
                parsed.parameters.push((texts.remove(0), texts.remove(0)));
            }
            tag::READY_FOR_QUERY => parsed.ready += 1,
            tag::EMPTY_QUERY_RESPONSE => parsed.empty += 1,
            other => panic!("unexpected message {}", other.escape_ascii()),
        }
    }
    for row in &parsed.rows {
        assert_eq!(row.len(), parsed.columns.len());
    }
    parsed
}

fn texts(body: &[u8]) -> Vec<String> {
    body.split(|byte| *byte == 0).map(|text| String::from_utf8(text.to_vec()).unwrap()).collect()
}

fn columns(body: &[u8]) -> Vec<(String, u32)> {
    let mut rest = &body[2..];
    let mut columns = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0).unwrap();
        let name = String::from_utf8(rest[..end].to_vec()).unwrap();
        let fixed = &rest[end + 1..end + 19];
        columns.push((name, u32::from_be_bytes(fixed[6..10].try_into().unwrap())));
        rest = &rest[end + 19..];
    }
    columns
}

fn row(body: &[u8]) -> Vec<Option<String>> {
    let mut rest = &body[2..];
    let mut values = Vec::new();
    while !rest.is_empty() {
        let length = i32::from_be_bytes(rest[..4].try_into().unwrap());
        rest = &rest[4..];
        values.push(usize::try_from(length).ok().map(|length| {
            let value = String::from_utf8(rest[..length].to_vec()).unwrap();
            rest = &rest[length..];
            value
        }));
    }
    values
}

fn login(admin: bool) -> ConsoleLogin {
    ConsoleLogin {
        user: "ops".to_owned(),
        admin,
        address: ClientAddress::Unix { port: 6432, uid: 0, pid: 1 },
        pending: Vec::new(),
    }
}

fn context(rows: Rows) -> (Arc<ConsoleContext<Rows>>, mpsc::Receiver<ReloadRequest>) {
    let (sender, receiver) = mpsc::channel(1);
    (Arc::new(ConsoleContext::new(rows, sender, "0.1.0")), receiver)
}

/// A client that has read its greeting.
struct Client {
    stream: DuplexStream,
    greeting: Parsed,
}

impl Client {
    async fn connect(context: &Arc<ConsoleContext<Rows>>, login: ConsoleLogin) -> Self {
        let (stream, theirs) = tokio::io::duplex(1 << 20);
        let context = Arc::clone(context);
        tokio::spawn(async move { session::run(theirs, login, String::new(), &context).await });
        let mut client = Self { stream, greeting: Parsed::default() };
        client.greeting = client.answer().await;
        client
    }

    async fn query(&mut self, text: &str) -> Parsed {
        let mut out = Vec::new();
        frontend::query(&mut out, text);
        self.send(&out).await
    }

    async fn send(&mut self, bytes: &[u8]) -> Parsed {
        self.stream.write_all(bytes).await.unwrap();
        self.answer().await
    }

    /// All up to ReadyForQuery or the end of the stream.
    async fn answer(&mut self) -> Parsed {
        let mut bytes = Vec::new();
        loop {
            let mut chunk = [0; 4096];
            let count = self.stream.read(&mut chunk).await.unwrap();
            bytes.extend_from_slice(&chunk[..count]);
            if count == 0 || bytes.ends_with(b"Z\0\0\0\x05I") {
                return parse(&bytes);
            }
        }
    }
}

#[tokio::test]
async fn a_client_is_greeted_with_what_drivers_need_and_then_answered() {
    let rows = Rows { pools: vec![pool_row("app", "web")], ..Rows::default() };
    let (context, _reload) = context(rows);
    let mut client = Client::connect(&context, login(false)).await;
    assert_eq!(client.greeting.ready, 1);
    for (name, value) in [
        ("server_version", "0.1.0/holdfast"),
        ("client_encoding", "UTF8"),
        ("standard_conforming_strings", "on"),
    ] {
        assert!(client.greeting.parameters.contains(&(name.to_owned(), value.to_owned())), "{name}");
    }
    let pools = client.query("show pools").await;
    assert_eq!((pools.rows.len(), pools.ready), (2, 1));
    assert_eq!(client.query("SHOW VERSION;").await.value(0, "version"), Some("holdfast 0.1.0"));
    assert_eq!(client.query("").await.empty, 1);
}

#[tokio::test]
async fn wrong_and_unbuilt_commands_leave_the_session_usable() {
    let (context, _reload) = context(Rows::default());
    let mut client = Client::connect(&context, login(true)).await;
    let wrong = client.query("foo bar;").await;
    assert_eq!(wrong.errors, [("42601".to_owned(), "invalid command 'foo bar;', use SHOW HELP;".to_owned())]);
    let unbuilt = client.query("PAUSE").await;
    assert_eq!(unbuilt.errors, [("0A000".to_owned(), "PAUSE is not built yet".to_owned())]);
    assert_eq!(client.query("show help").await.notices, ["Console usage"]);
}

#[tokio::test]
async fn several_statements_share_a_message_up_to_a_bound_and_an_error_ends_them() {
    let (context, _reload) = context(Rows::default());
    let mut client = Client::connect(&context, login(true)).await;
    let both = client.query("show version; show help").await;
    assert_eq!((both.tags.len(), both.ready), (2, 1));
    let broken = client.query("show version; nonsense; show version").await;
    assert_eq!((broken.tags.len(), broken.errors.len(), broken.ready), (1, 1, 1));
    assert_eq!(broken.errors[0].1, "invalid command 'nonsense', use SHOW HELP;");
    assert_eq!(client.query(&"show version;".repeat(MAX_STATEMENTS)).await.tags.len(), MAX_STATEMENTS);
    let many = client.query(&"show version;".repeat(MAX_STATEMENTS + 1)).await;
    assert_eq!((many.tags.len(), many.errors[0].0.as_str()), (0, "54000"));
}

#[tokio::test]
async fn the_extended_protocol_is_refused_once_and_skipped_to_sync() {
    let (context, _reload) = context(Rows::default());
    let mut client = Client::connect(&context, login(true)).await;
    let mut batch = b"P\0\0\0\x10\0show pools\0\0\0".to_vec();
    batch[4] = u8::try_from(batch.len() - 1).unwrap();
    batch.extend_from_slice(b"B\0\0\0\x0c\0\0\0\0\0\0\0\0E\0\0\0\x09\0\0\0\0\0");
    // PostgreSQL, too, skips a Query in a failed batch.
    frontend::query(&mut batch, "show version");
    frontend::sync(&mut batch);
    let refused = client.send(&batch).await;
    assert_eq!(
        refused.errors,
        [("0A000".to_owned(), "extended query protocol not supported by admin console".to_owned())]
    );
    assert_eq!((refused.rows.len(), refused.ready), (0, 1));
    assert_eq!(client.query("show version").await.rows.len(), 1);
}

#[tokio::test]
async fn a_message_beyond_the_bound_ends_the_session_with_a_reason() {
    let (context, _reload) = context(Rows::default());
    let mut client = Client::connect(&context, login(true)).await;
    let just_fits = format!("show {}", "x".repeat(MAX_MESSAGE_BYTES as usize - 4 - 1 - 5));
    assert_eq!(client.query(&just_fits).await.errors[0].0, "42601");
    let refused = client.query(&format!("{just_fits}x")).await;
    assert_eq!((refused.errors[0].0.as_str(), refused.ready), ("54000", 0));
}

#[tokio::test]
async fn reload_and_the_hash_of_the_file_are_for_admins_and_reload_tells_what_came_of_it() {
    let (context, mut requests) = context(Rows::default());
    let mut reader = Client::connect(&context, login(false)).await;
    for command in ["RELOAD", "SHOW CONFIG_HASH"] {
        assert_eq!(
            reader.query(command).await.errors,
            [("42501".to_owned(), "admin access needed".to_owned())],
            "{command}"
        );
    }

    let mut admin = Client::connect(&context, login(true)).await;
    tokio::spawn(async move {
        let fine = ReloadReport { notes: vec!["listen_port needs a restart".to_owned()] };
        requests.recv().await.unwrap().answer.send(Ok(fine)).unwrap();
        requests.recv().await.unwrap().answer.send(Err("line 3".to_owned())).unwrap();
    });
    let done = admin.query("reload;").await;
    assert_eq!(
        (done.tags, done.notices),
        (vec!["RELOAD".to_owned()], vec!["listen_port needs a restart".to_owned()])
    );
    let failed = admin.query("reload;").await;
    assert_eq!(
        failed.errors,
        [("F0000".to_owned(), "RELOAD failed, see logs for additional details".to_owned())]
    );
    assert_eq!(admin.query("reload;").await.errors[0].0, "58000", "nobody owns the file any more");
}

#[tokio::test]
async fn a_silent_data_plane_is_an_error_and_not_the_end() {
    let (context, _reload) = context(Rows { silent: true, ..Rows::default() });
    let mut client = Client::connect(&context, login(true)).await;
    assert_eq!(client.query("show pools").await.errors[0].0, "58000");
    assert_eq!(client.query("show version").await.rows.len(), 1);
}

#[tokio::test]
async fn bytes_that_came_with_the_login_are_answered() {
    let (context, _reload) = context(Rows::default());
    let mut pending = Vec::new();
    frontend::query(&mut pending, "show version");
    let mut client = Client::connect(&context, ConsoleLogin { pending, ..login(true) }).await;
    let mut rows = client.greeting.rows.len();
    if rows == 0 {
        rows = client.answer().await.rows.len();
    }
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn one_session_too_many_is_told_so() {
    let (context, _reload) = context(Rows::default());
    let mut clients = Vec::new();
    for _ in 0..MAX_CONSOLE_SESSIONS {
        clients.push(Client::connect(&context, login(false)).await);
    }
    assert_eq!(Client::connect(&context, login(true)).await.greeting.errors[0].0, "53300");
    assert_eq!(clients[0].query("show clients").await.rows.len(), MAX_CONSOLE_SESSIONS);
}
