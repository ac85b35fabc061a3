//! Opening a server connection: connect, log in, run `connect_query`, all within one limit.

use super::connect_query;
use super::dial::{Resolver, dial};
use super::failure::Failure;
use super::hashing::aside;
use super::inbound::{Inbound, Message};
use super::request::Way;
use super::stream::{Parts, ServerStream};
use crate::reactor::Opened;
use pgwire::Password;
use pgwire::connect::{ServerLogin, ServerReady, ServerSecret as WireSecret, ServerStep, StartupRequest};
use pgwire::md5::Md5Secret;
use pgwire::message::tag;
use pooling::seam::{OpenFailure, OpenServer, OpenedServer, ServerSecret, Target};
use settings::pooler::{Secret, ServerAddress};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// AuthenticationSASLContinue: the answer to it costs the server's iterations if the secret is a password.
const SASL_CONTINUE: [u8; 4] = 11_u32.to_be_bytes();

/// Opens a server connection.
///
/// # Errors
/// What it means for further attempts, with texts for the client and for the log.
pub(super) async fn open(request: OpenServer, way: &Way, resolver: &Resolver) -> Result<Opened, OpenFailure> {
    let result = match timeout(request.limit, attempt(&request, way, resolver)).await {
        Ok(result) => result,
        Err(_) => Err(Failure::TimedOut(request.limit)),
    };
    result.map_err(|failure| failure.into_answer(&request.target))
}

async fn attempt(request: &OpenServer, way: &Way, resolver: &Resolver) -> Result<Opened, Failure> {
    let started = Instant::now();
    let target = &request.target;
    let connected = connect(target, way, resolver, request.attempt.0, request.limit).await?;
    let Connected { mut stream, mut inbound, ready } = connected;
    let ServerReady { cancel_key, mut parameters, .. } = ready;
    if let Some(sql) = target.connect_query.as_deref().filter(|sql| !sql.trim().is_empty()) {
        connect_query::run(sql, &mut stream, &mut inbound, &mut parameters).await?;
    }
    let (peer, is_unix) = (stream.peer(), stream.is_unix());
    let Parts { descriptor, tls, leftover: decrypted } = stream.into_parts().await.map_err(Failure::Lost)?;
    let (process_id, secret_key) = match cancel_key {
        Some(key) => (key.process_id, key.secret.as_bytes().to_vec()),
        None => (0, Vec::new()),
    };
    let mut leftover = inbound.into_leftover();
    leftover.extend_from_slice(&decrypted);
    let login_time = started.elapsed();
    let server = OpenedServer { process_id, secret_key, parameters, leftover, peer, login_time };
    Ok(Opened { attempt: request.attempt, server, descriptor, is_unix, tls })
}

/// A server connection that has logged in.
#[derive(Debug)]
pub(super) struct Connected {
    pub stream: ServerStream,
    pub inbound: Inbound,
    pub ready: ServerReady,
}

/// Connects and logs in. `rotation` chooses among the addresses of a name; `limit` is for the connect.
pub(super) async fn connect(
    target: &Target,
    way: &Way,
    resolver: &Resolver,
    rotation: u64,
    limit: Duration,
) -> Result<Connected, Failure> {
    let mut stream = dial(&target.address, resolver, rotation, limit).await?;
    stream.prepare(way.keepalive).map_err(Failure::OurSide)?;
    if let (Some(tls), ServerAddress::Tcp { host, .. }) = (&way.tls, &target.address) {
        stream = stream.start_tls(tls, host).await?;
    }
    let mut inbound = Inbound::default();
    let ready = log_in(target, &mut stream, &mut inbound).await?;
    Ok(Connected { stream, inbound, ready })
}

async fn log_in(
    target: &Target,
    stream: &mut ServerStream,
    inbound: &mut Inbound,
) -> Result<ServerReady, Failure> {
    let secret = secret_of(&target.secret)?;
    let costly = matches!(secret, Some(WireSecret::Plain(_)));
    let request = StartupRequest {
        user: target.user.clone(),
        database: target.database.clone(),
        parameters: target.parameters.clone(),
    };
    let (mut login, first) = ServerLogin::start(&request, secret)?;
    stream.write_all(&first).await.map_err(Failure::Lost)?;
    loop {
        let message = inbound.next(stream).await?;
        let random = random()?;
        let step = if costly && message.tag == tag::AUTHENTICATION && message.body.starts_with(&SASL_CONTINUE)
        {
            costly_step(login, message, random).await?
        } else {
            login.on_message(message.tag, &message.body, &random)?
        };
        login = match step {
            ServerStep::Ready(ready) => return Ok(ready),
            ServerStep::Continue { login, send } => {
                if !send.is_empty() {
                    stream.write_all(&send).await.map_err(Failure::Lost)?;
                }
                login
            }
        };
    }
}

async fn costly_step(login: ServerLogin, message: Message, random: [u8; 32]) -> Result<ServerStep, Failure> {
    let step = aside(move || login.on_message(message.tag, &message.body, &random)).await;
    Ok(step.map_err(|error| Failure::OurSide(std::io::Error::other(error)))??)
}

fn random() -> Result<[u8; 32], Failure> {
    let mut bytes = [0; 32];
    let failed = |_| Failure::OurSide(std::io::Error::other("the system has no random bytes"));
    aws_lc_rs::rand::fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A stored verifier proves nothing to a server: only what a login with it teaches does.
fn secret_of(secret: &ServerSecret) -> Result<Option<WireSecret>, Failure> {
    Ok(match secret {
        ServerSecret::None | ServerSecret::Configured(Secret::ScramVerifier(_)) => None,
        ServerSecret::Learnt(keys) => Some(WireSecret::ScramKeys(keys.clone())),
        ServerSecret::Configured(Secret::Plain(password)) => Some(WireSecret::Plain(Password::new(password))),
        ServerSecret::Configured(Secret::Md5(text)) => {
            Some(WireSecret::Md5(Md5Secret::parse(text).ok_or(Failure::BadMd5)?))
        }
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;
