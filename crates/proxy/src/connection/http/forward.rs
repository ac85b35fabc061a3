//! One request in absolute form: its body there, its answer back. The connection to the target carries nothing else.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use egress::Target;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::super::client::Client;
use super::super::pacing::{COPY_BYTES, Pacer};
use super::super::{Gone, Proxy};
use crate::accounts::Admitted;
use crate::control::Control;
use crate::exits::Exits;
use crate::http::response::{Behind, Response};
use crate::http::{Body, HeadError, MAX_HEAD_BYTES};
use crate::refusal::{Reason, Refusal};

/// The most interim answers (1xx) to one request.
const MAX_INTERIM: usize = 16;

/// A request as it goes to the target.
pub(super) struct Forwarded {
    pub(super) method: String,
    pub(super) head: Vec<u8>,
    pub(super) body: Body,
    pub(super) behind: Behind,
}

/// What has become of it.
pub(super) enum End {
    /// The answer has been passed on, and the connection goes on like this.
    Answered(Behind),
    /// Nothing has been answered yet.
    Refused(Refusal),
}

/// Passes a request on, and its answer back.
pub(super) async fn forward<E: Exits, C: Control>(
    proxy: &Arc<Proxy<E, C>>,
    client: &mut Client,
    (account, options): &Admitted,
    target: &Target,
    request: Forwarded,
) -> Result<End, Gone> {
    let opened = tokio::select! {
        opened = proxy.opener.open(account, options, target) => opened,
        () = client.left() => return Err(Gone),
    };
    let opened = match opened {
        Ok(opened) => opened,
        Err(refusal) => return Ok(End::Refused(refusal)),
    };
    proxy.counts.opened();
    let pacer = Pacer::new(account, proxy.opener.clock);
    let Forwarded { method, mut head, mut body, behind } = request;
    let first = body.take(client.received()).map_err(|_| Gone)?;
    head.extend_from_slice(client.received().get(..first).unwrap_or_default());
    client.take(first);
    let (mut from_target, mut to_target) = split(opened.stream);
    // A provider that takes no bytes must hold nobody, least of all a customer that has left.
    let written = tokio::select! {
        written = to_target.write_all(&head) => written,
        () = pacer.idle_for(proxy.config.idle()) => {
            return Ok(End::Refused(Refusal::new(Reason::TargetTimeout, "the target takes nothing")));
        }
        () = client.left() => return Err(Gone),
    };
    if written.is_err() {
        return Ok(End::Refused(broke_off()));
    }
    let sent = AtomicBool::new(body.is_done());
    // What was read beyond the body belongs to the next request.
    let watches = client.received().is_empty();
    let (from_client, to_client) = client.socket()?.split();
    let mut sending = pin!(send(from_client, &mut to_target, body, &sent, &pacer, watches));
    let mut answering = pin!(
        Answer { method: &method, behind, sent: &sent, pacer: &pacer }.pass(&mut from_target, to_client)
    );
    tokio::select! {
        // Both at once: an answer counts more than a customer that leaves behind it.
        biased;
        answered = &mut answering => answered,
        gone = &mut sending => Err(gone),
        () = pacer.idle_for(proxy.config.idle()) => {
            Ok(End::Refused(Refusal::new(Reason::TargetTimeout, "the target did not answer")))
        }
    }
}

/// Sends the rest of the body. Comes back only if the customer has left.
async fn send(
    mut from: ReadHalf<'_>,
    to: &mut (impl AsyncWrite + Unpin),
    mut body: Body,
    sent: &AtomicBool,
    pacer: &Pacer<'_>,
    watches: bool,
) -> Gone {
    let mut buffer = vec![0; if body.is_done() { 0 } else { COPY_BYTES }];
    while !body.is_done() {
        // No more than belongs to the body: what is behind it is the next request.
        let Ok(seen @ 1..) = from.peek(&mut buffer).await else { return Gone };
        let Ok(count) = body.take(buffer.get(..seen).unwrap_or_default()) else { return Gone };
        let Some(part) = buffer.get_mut(..count) else { return Gone };
        if from.read_exact(part).await.is_err() {
            return Gone;
        }
        pacer.passed(count).await;
        if to.write_all(part).await.is_err() {
            // It may have answered all the same.
            return pending().await;
        }
    }
    sent.store(true, Ordering::Relaxed);
    if watches && matches!(from.peek(&mut [0]).await, Ok(0) | Err(_)) {
        return Gone;
    }
    pending().await
}

struct Answer<'request> {
    method: &'request str,
    behind: Behind,
    sent: &'request AtomicBool,
    pacer: &'request Pacer<'request>,
}

impl Answer<'_> {
    async fn pass(self, from: &mut (impl AsyncRead + Unpin), mut to: WriteHalf<'_>) -> Result<End, Gone> {
        let mut received = Vec::with_capacity(COPY_BYTES);
        let mut interim = 0;
        let (mut body, behind) = loop {
            let AnswerHead { mut head, length, body, behind } = match self.head(&received) {
                Ok(Some(read)) => read,
                Ok(None) if received.len() < MAX_HEAD_BYTES => {
                    match from.read_buf(&mut received).await {
                        Ok(0) | Err(_) if interim == 0 => return Ok(End::Refused(broke_off())),
                        Ok(0) | Err(_) => return Err(Gone),
                        Ok(count) => self.pacer.passed(count).await,
                    }
                    continue;
                }
                Ok(None) | Err(_) if interim == 0 => {
                    let cause = "the target's answer is not HTTP/1";
                    return Ok(End::Refused(Refusal::new(Reason::BadAnswer, cause)));
                }
                Ok(None) | Err(_) => return Err(Gone),
            };
            received.drain(..length);
            let Some(mut body) = body else {
                interim += 1;
                if interim > MAX_INTERIM {
                    return Err(Gone);
                }
                to.write_all(&head).await?;
                continue;
            };
            // Head and first bytes in one write.
            let first = body.take(&received).map_err(|_| Gone)?;
            head.extend_from_slice(received.get(..first).unwrap_or_default());
            to.write_all(&head).await?;
            break (body, behind);
        };
        while !body.is_done() {
            received.clear();
            let count = from.read_buf(&mut received).await?;
            if count == 0 {
                // Cut short, the customer has to see it: by a connection that ends in the middle.
                return if body == Body::UntilClose { Ok(End::Answered(Behind::Close)) } else { Err(Gone) };
            }
            self.pacer.passed(count).await;
            let taken = body.take(&received).map_err(|_| Gone)?;
            to.write_all(received.get(..taken).unwrap_or_default()).await?;
        }
        Ok(End::Answered(behind))
    }

    /// The next head, if it is whole.
    fn head(&self, received: &[u8]) -> Result<Option<AnswerHead>, HeadError> {
        let Some((response, length)) = Response::parse(received)? else { return Ok(None) };
        // Nobody has asked for another protocol.
        if response.status == 101 {
            return Err(HeadError::FirstLine);
        }
        let body = response.body(self.method)?;
        let all_sent = self.sent.load(Ordering::Relaxed);
        let behind = if body == Body::UntilClose || !all_sent { Behind::Close } else { self.behind };
        let mut head = Vec::new();
        response.write_forwarded(behind, &mut head);
        let body = if response.is_interim() { None } else { Some(body) };
        Ok(Some(AnswerHead { head, length, body, behind }))
    }
}

/// One head of an answer.
struct AnswerHead {
    /// As the customer sees it.
    head: Vec<u8>,
    /// Its length as it came.
    length: usize,
    /// The body behind it; none behind an interim answer.
    body: Option<Body>,
    /// How the connection goes on.
    behind: Behind,
}

fn broke_off() -> Refusal {
    Refusal::new(Reason::BadAnswer, "the target ended the connection without an answer")
}
