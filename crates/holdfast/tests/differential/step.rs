//! One message of a client, readable and as bytes.

use std::fmt;

use drill::wire::frame;

/// Stands in SQL for the client's own number: names of tables, channels, locks and large objects end with it, so that
/// clients do not meet.
pub(crate) const NUMBER: &str = "%k";

/// A message that a client may send once it is logged in.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Query(String),
    Parse { name: String, sql: String, types: Vec<u32> },
    Bind(Bind),
    DescribeStatement(String),
    DescribePortal(String),
    Execute { portal: String, max_rows: u32 },
    CloseStatement(String),
    ClosePortal(String),
    FunctionCall(FunctionCall),
    CopyData(Vec<u8>),
    CopyDone,
    CopyFail(String),
    Flush,
    Sync,
}

/// What a FunctionCall holds; formats are 0 for text and 1 for binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionCall {
    pub(crate) function: u32,
    pub(crate) format: u16,
    pub(crate) arguments: Vec<Option<Vec<u8>>>,
    pub(crate) result_format: u16,
}

/// What a Bind holds; formats are 0 for text and 1 for binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) portal: String,
    pub(crate) statement: String,
    pub(crate) formats: Vec<u16>,
    pub(crate) values: Vec<Option<Vec<u8>>>,
    pub(crate) result_formats: Vec<u16>,
}

impl Step {
    /// The message as it is sent.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Query(sql) => frame::query(sql),
            Self::Parse { name, sql, types } => frame::parse_typed(name, sql, types),
            Self::Bind(bind) => frame::bind_formatted(
                &bind.portal,
                &bind.statement,
                &bind.formats,
                &bind.values,
                &bind.result_formats,
            ),
            Self::DescribeStatement(name) => frame::describe_statement(name),
            Self::DescribePortal(name) => frame::describe_portal(name),
            Self::Execute { portal, max_rows } => frame::execute(portal, *max_rows),
            Self::CloseStatement(name) => frame::close_statement(name),
            Self::ClosePortal(name) => frame::close_portal(name),
            Self::FunctionCall(call) => {
                frame::function_call(call.function, &[call.format], &call.arguments, call.result_format)
            }
            Self::CopyData(data) => frame::copy_data(data),
            Self::CopyDone => frame::copy_done(),
            Self::CopyFail(reason) => frame::copy_fail(reason),
            Self::Flush => frame::flush(),
            Self::Sync => frame::sync(),
        }
    }

    /// The same with the client's own number for [`NUMBER`].
    pub(crate) fn numbered(&self, number: u64) -> Self {
        let text = |text: &String| text.replace(NUMBER, &number.to_string());
        let bytes = |bytes: &Vec<u8>| match std::str::from_utf8(bytes) {
            Ok(valid) => valid.replace(NUMBER, &number.to_string()).into_bytes(),
            Err(_) => bytes.clone(),
        };
        match self {
            Self::Query(sql) => Self::Query(text(sql)),
            Self::Parse { name, sql, types } => {
                Self::Parse { name: name.clone(), sql: text(sql), types: types.clone() }
            }
            Self::CopyData(data) => Self::CopyData(bytes(data)),
            Self::FunctionCall(call) => {
                let arguments = call.arguments.iter().map(|argument| argument.as_ref().map(bytes)).collect();
                Self::FunctionCall(FunctionCall { arguments, ..call.clone() })
            }
            other => other.clone(),
        }
    }

    /// Whether PostgreSQL answers it with a ReadyForQuery of its own, outside of a COPY and of a failed batch.
    pub(crate) fn asks_ready(&self) -> bool {
        matches!(self, Self::Query(_) | Self::FunctionCall(_) | Self::Sync)
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(sql) => write!(formatter, "Query {}", short(format!("{sql:?}"))),
            Self::Parse { name, sql, types } => {
                write!(formatter, "Parse {name:?} {} {types:?}", short(format!("{sql:?}")))
            }
            Self::Bind(bind) => {
                let values: Vec<String> = bind.values.iter().map(shown).collect();
                let Bind { portal, statement, formats, result_formats, .. } = bind;
                write!(
                    formatter,
                    "Bind {portal:?} of {statement:?} {formats:?} ({}) {result_formats:?}",
                    values.join(", ")
                )
            }
            Self::DescribeStatement(name) => write!(formatter, "Describe S {name:?}"),
            Self::DescribePortal(name) => write!(formatter, "Describe P {name:?}"),
            Self::Execute { portal, max_rows } => write!(formatter, "Execute {portal:?} {max_rows}"),
            Self::CloseStatement(name) => write!(formatter, "Close S {name:?}"),
            Self::ClosePortal(name) => write!(formatter, "Close P {name:?}"),
            Self::FunctionCall(call) => {
                let arguments: Vec<String> = call.arguments.iter().map(shown).collect();
                let FunctionCall { function, format, result_format, .. } = call;
                write!(
                    formatter,
                    "FunctionCall {function} {format} ({}) {result_format}",
                    arguments.join(", ")
                )
            }
            Self::CopyData(data) => write!(formatter, "CopyData \"{}\"", data.escape_ascii()),
            Self::CopyDone => formatter.write_str("CopyDone"),
            Self::CopyFail(reason) => write!(formatter, "CopyFail {reason:?}"),
            Self::Flush => formatter.write_str("Flush"),
            Self::Sync => formatter.write_str("Sync"),
        }
    }
}

fn shown(value: &Option<Vec<u8>>) -> String {
    value.as_ref().map_or_else(|| "NULL".to_owned(), |value| short(format!("\"{}\"", value.escape_ascii())))
}

/// Long texts by their beginning and their length.
fn short(text: String) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
