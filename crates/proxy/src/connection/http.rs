//! HTTP: CONNECT makes a tunnel; a request in absolute form is forwarded, and another may follow.

mod forward;

use std::sync::Arc;

use egress::Target;
use tokio::time::{Instant, timeout_at};

use super::client::Client;
use super::{Gone, Proxy, pacing};
use crate::accounts::Admitted;
use crate::config::Listen;
use crate::control::Control;
use crate::exits::Exits;
use crate::http::response::Behind;
use crate::http::{Body, HeadError, Request, Way, answer};
use crate::refusal::{Reason, Refusal};

/// A connection without a request ends after this time.
const BETWEEN_REQUESTS: std::time::Duration = std::time::Duration::from_secs(60);

/// What a request wants, owned: the buffer goes on.
struct Asked {
    login: Option<(String, Vec<u8>)>,
    way: Result<Wanted, Refusal>,
    behind: Behind,
    body: Body,
    /// Its body will not be read if it is refused: then nothing can follow it.
    has_body: bool,
}

enum Wanted {
    Tunnel(Target),
    Forward { target: Target, method: String, head: Vec<u8> },
}

pub(super) async fn serve<E: Exits, C: Control>(
    proxy: &Arc<Proxy<E, C>>,
    client: &mut Client,
    listen: &Listen,
    first_deadline: Instant,
) -> Result<(), Gone> {
    let mut deadline = first_deadline;
    loop {
        let asked = tokio::select! {
            // A request that has come is answered.
            biased;
            asked = timeout_at(deadline, read(client)) => asked.map_err(|_| Gone)??,
            () = proxy.stops() => return Ok(()),
        };
        let asked = match asked {
            Ok(asked) => asked,
            Err(error) => return refuse(proxy, client, &error.into(), Behind::Close).await.map(drop),
        };
        let behind_refusal = if asked.has_body { Behind::Close } else { asked.behind };
        let admitted = admit(proxy, client, listen, asked.login.as_ref());
        let admitted = timeout_at(deadline, admitted).await.map_err(|_| Gone)?;
        if admitted.is_ok() {
            client.admitted();
        }
        let refused = match (admitted, asked.way) {
            (Err(refusal), _) | (Ok(_), Err(refusal)) => refusal,
            (Ok(admitted), Ok(Wanted::Tunnel(target))) => {
                match tunnel(proxy, client, &admitted, &target).await? {
                    None => return Ok(()),
                    Some(refusal) => refusal,
                }
            }
            (Ok(admitted), Ok(Wanted::Forward { target, method, head })) => {
                let request = forward::Forwarded { method, head, body: asked.body, behind: asked.behind };
                match forward::forward(proxy, client, &admitted, &target, request).await? {
                    forward::End::Answered(Behind::Close) => return Ok(()),
                    forward::End::Answered(Behind::KeepAlive) => {
                        deadline = Instant::now() + BETWEEN_REQUESTS;
                        continue;
                    }
                    forward::End::Refused(refusal) => refusal,
                }
            }
        };
        if refuse(proxy, client, &refused, behind_refusal).await? == Behind::Close {
            return Ok(());
        }
        deadline = Instant::now() + BETWEEN_REQUESTS;
    }
}

/// The next request.
async fn read(client: &mut Client) -> Result<Result<Asked, HeadError>, Gone> {
    loop {
        match Request::parse(client.received()) {
            Err(error) => return Ok(Err(error)),
            Ok(None) => {}
            Ok(Some((request, length))) => {
                let asked = own(&request);
                client.take(length);
                return Ok(Ok(asked));
            }
        }
        client.more().await?;
    }
}

fn own(request: &Request<'_>) -> Asked {
    let way = request.way().map(|way| match way {
        Way::Tunnel(target) => Wanted::Tunnel(target),
        Way::Forward { target, authority, path } => {
            let mut head = Vec::new();
            request.write_forwarded(authority, path, &mut head);
            Wanted::Forward { target, method: request.method.to_owned(), head }
        }
    });
    let behind = if request.keeps_alive() { Behind::KeepAlive } else { Behind::Close };
    Asked { login: request.login(), way, behind, body: request.body, has_body: !request.body.is_done() }
}

async fn admit<E: Exits, C: Control>(
    proxy: &Proxy<E, C>,
    client: &Client,
    listen: &Listen,
    login: Option<&(String, Vec<u8>)>,
) -> Result<Admitted, Refusal> {
    match (login, &listen.no_auth_account) {
        (Some((name, password)), _) => {
            proxy.accounts.admit(name, password, client.address(), &listen.selection).await
        }
        (None, Some(account)) => proxy.accounts.admit_nameless(account, &listen.selection).await,
        (None, None) => {
            let cause = "this proxy needs a user name and a password (Basic)";
            Err(Refusal::new(Reason::LoginRequired, cause))
        }
    }
}

/// A tunnel until its end; or why there is none.
async fn tunnel<E: Exits, C: Control>(
    proxy: &Arc<Proxy<E, C>>,
    client: &mut Client,
    (account, options): &Admitted,
    target: &Target,
) -> Result<Option<Refusal>, Gone> {
    let opened = tokio::select! {
        opened = proxy.opener.open(account, options, target) => opened,
        () = client.left() => return Err(Gone),
    };
    match opened {
        Err(refusal) => Ok(Some(refusal)),
        Ok(opened) => {
            client.write(answer::connected(opened.lease.exit()).as_bytes()).await?;
            proxy.counts.opened();
            pacing::carry(proxy, client, opened, account).await?;
            Ok(None)
        }
    }
}

/// Answers a refusal; how the connection goes on.
async fn refuse<E: Exits, C: Control>(
    proxy: &Proxy<E, C>,
    client: &mut Client,
    refusal: &Refusal,
    behind: Behind,
) -> Result<Behind, Gone> {
    proxy.counts.refused(refusal.reason);
    tracing::debug!(%refusal, "a request is refused");
    let answer = answer::refused(refusal, behind);
    match behind {
        Behind::Close => client.write_last(answer.as_bytes()).await?,
        Behind::KeepAlive => client.write(answer.as_bytes()).await?,
    }
    Ok(behind)
}
