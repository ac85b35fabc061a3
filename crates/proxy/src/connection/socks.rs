//! SOCKS5: greeting, login, request, stream.

use std::sync::Arc;

use egress::Target;
use tokio::time::{Instant, timeout_at};

use super::client::Client;
use super::{Gone, Proxy, pacing};
use crate::accounts::Admitted;
use crate::config::Listen;
use crate::control::Control;
use crate::exits::Exits;
use crate::refusal::Refusal;
use crate::socks::{self, MAX_MESSAGE_BYTES, Method, SocksError};

pub(super) async fn serve<E: Exits, C: Control>(
    proxy: &Arc<Proxy<E, C>>,
    client: &mut Client,
    listen: &Listen,
    deadline: Instant,
) -> Result<(), Gone> {
    let asked = timeout_at(deadline, handshake(proxy, client, listen)).await.map_err(|_| Gone)??;
    let Some(((account, options), target)) = asked else { return Ok(()) };
    client.admitted();
    let target = match target {
        Ok(target) => target,
        Err(refusal) => return refuse(proxy, client, &refusal).await,
    };
    let opened = tokio::select! {
        opened = proxy.opener.open(&account, &options, &target) => opened,
        () = client.left() => return Err(Gone),
    };
    match opened {
        Ok(opened) => {
            client.write(&socks::reply(None)).await?;
            proxy.counts.opened();
            pacing::carry(proxy, client, opened, &account).await
        }
        Err(refusal) => refuse(proxy, client, &refusal).await,
    }
}

/// Up to the request; `None` if the customer has been refused.
async fn handshake<E: Exits, C: Control>(
    proxy: &Proxy<E, C>,
    client: &mut Client,
    listen: &Listen,
) -> Result<Option<(Admitted, Result<Target, Refusal>)>, Gone> {
    let greeting = message(client, socks::greeting).await?;
    let method = match (greeting.login, greeting.no_login, &listen.no_auth_account) {
        (true, ..) => Method::Login,
        (false, true, Some(_)) => Method::NoLogin,
        _ => Method::Unacceptable,
    };
    client.write(&method.answer()).await?;
    let admitted = match (method, &listen.no_auth_account) {
        (Method::Login, _) => {
            let own = |bytes: &[u8]| {
                let read = socks::login(bytes)?;
                Ok(read.map(|(login, taken)| ((login.name.to_vec(), login.password.to_vec()), taken)))
            };
            let (name, password) = message(client, own).await?;
            let name = String::from_utf8_lossy(&name);
            let admitted = proxy.accounts.admit(&name, &password, client.address(), &listen.selection).await;
            client.write(&socks::login_answer(admitted.is_ok())).await?;
            admitted
        }
        (Method::NoLogin, Some(account)) => proxy.accounts.admit_nameless(account, &listen.selection).await,
        _ => return Err(Gone),
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(refusal) => {
            proxy.counts.refused(refusal.reason);
            tracing::debug!(%refusal, "a customer is not let in");
            // After a login that failed there is nothing but the end (RFC 1929 §2).
            client.write_last(&[]).await?;
            return Ok(None);
        }
    };
    Ok(Some((admitted, message(client, socks::request).await?)))
}

/// The next message of a customer.
async fn message<T>(
    client: &mut Client,
    read: impl Fn(&[u8]) -> Result<Option<(T, usize)>, SocksError>,
) -> Result<T, Gone> {
    loop {
        match read(client.received()) {
            Ok(Some((message, taken))) => {
                client.take(taken);
                return Ok(message);
            }
            Ok(None) if client.received().len() <= MAX_MESSAGE_BYTES => client.more().await?,
            Ok(None) => return Err(Gone),
            Err(error) => {
                tracing::debug!(%error, "a customer does not speak SOCKS5");
                return Err(Gone);
            }
        }
    }
}

async fn refuse<E: Exits, C: Control>(
    proxy: &Proxy<E, C>,
    client: &mut Client,
    refusal: &Refusal,
) -> Result<(), Gone> {
    proxy.counts.refused(refusal.reason);
    tracing::debug!(%refusal, "an open is refused");
    client.write_last(&socks::reply(Some(refusal.reason))).await
}
