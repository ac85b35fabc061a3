//! `connect_query`: what runs once on each new server connection.

use super::failure::Failure;
use super::inbound::Inbound;
use super::stream::ServerStream;
use pgwire::message::{ErrorFields, TransactionStatus, frontend, parse, tag};

/// A server that wants to be sent rows; nobody has any.
const COPY_IN_RESPONSE: u8 = b'G';
/// The same in both directions.
const COPY_BOTH_RESPONSE: u8 = b'W';

/// Runs it and waits until the server is ready again. Changed parameters replace those of the login.
pub(super) async fn run(
    sql: &str,
    stream: &mut ServerStream,
    inbound: &mut Inbound,
    parameters: &mut [(String, String)],
) -> Result<(), Failure> {
    let mut query = Vec::new();
    frontend::query(&mut query, sql);
    stream.write_all(&query).await.map_err(Failure::Lost)?;
    loop {
        let message = inbound.next(stream).await?;
        match message.tag {
            tag::ERROR_RESPONSE => {
                return Err(Failure::ConnectQuery(ErrorFields::parse(&message.body).to_string()));
            }
            tag::PARAMETER_STATUS => {
                let (name, value) = parse::parameter_status(&message.body)?;
                replace(parameters, &String::from_utf8_lossy(name), &String::from_utf8_lossy(value));
            }
            COPY_IN_RESPONSE | COPY_BOTH_RESPONSE => {
                return Err(Failure::ConnectQuery("it starts COPY FROM STDIN".to_owned()));
            }
            tag::READY_FOR_QUERY => {
                return match parse::ready_for_query(&message.body)? {
                    TransactionStatus::Idle => Ok(()),
                    _ => Err(Failure::ConnectQuery("it leaves a transaction open".to_owned())),
                };
            }
            _ => {}
        }
    }
}

/// A server cannot add parameters without bound here: only those that it reported at login are replaced.
fn replace(parameters: &mut [(String, String)], name: &str, value: &str) {
    if let Some((_, kept)) = parameters.iter_mut().find(|(kept, _)| kept == name) {
        value.clone_into(kept);
    }
}
