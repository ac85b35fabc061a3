//! A local port, forwarded through a provider of a network: whoever connects to it speaks with the target, from the provider's
//! address.
//!
//! ```text
//! cargo run -p holdfast-client --example forward -- STATE_FOLDER 127.0.0.1:8080 example.com:80
//! curl -H 'Host: example.com' http://127.0.0.1:8080/
//! ```
//!
//! The folder is one that has joined as an app (`Membership::join`); the account that it belongs to pays.

use anyhow::Context;
use client::api::{Caller, CandidatesQuery};
use client::{Contract, Family, Host, Link, Membership, OpenRequest, SpliceLimits, Target, Ways};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use trust::api::ContractRequest;
use trust::{ClientId, ContractId, PublicIdentity};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, listen, target] = &arguments[..] else {
        anyhow::bail!("usage: forward STATE_FOLDER LISTEN HOST:PORT");
    };
    let (host, port) = target.rsplit_once(':').context("the target is HOST:PORT")?;
    let target = Target { host: Host::Name(host.to_owned()), port: port.parse()? };

    // Who we are. The epoch is the number of this start: a copy of the folder that starts later takes our place.
    let member = Membership::open(Path::new(folder))?;
    member.refresh().await?;
    let epoch = member.take_epoch()?;

    // Who carries it, and what pays for it. One contract serves many streams; a longer program asks for the next when half of it
    // is used (`Contract::follows`), and keeps the token fresh (`Membership::keep_fresh`).
    let token = member.token();
    let caller = Caller { identity: member.identity(), token: &token };
    let candidates = member.api().candidates(caller, CandidatesQuery::default()).await?.candidates;
    let provider = candidates.first().context("no provider is connected")?;
    let provider_key = provider.identity.parse::<PublicIdentity>()?.seal_key();
    let request = ContractRequest { request: uuid::Uuid::new_v4(), proxy_account: None, previous: None };
    let block = member.api().open_contract(caller, &request).await?;
    let contract = Contract { id: ContractId(block.contract), text: block.signed.into(), follows: None };

    // The link to the provider's relay. `Ways` finds out whether only HTTP passes here.
    let ways = Ways::from_environment()?;
    let who = member.identification(epoch);
    let link = Link::connect_by(&provider.relay, who, None, Arc::default(), &ways).await?;
    let request = OpenRequest {
        provider: ClientId(provider.provider),
        provider_epoch: 0,
        provider_key,
        target,
        family: Family::Any,
        contract,
        deadline: Duration::from_secs(10),
        forward: false,
    };

    let listener = TcpListener::bind(listen).await?;
    loop {
        // A program that stays would dial anew when `link.ended()` comes, at the pace of `Pace::from(link.welcome())`.
        let (socket, _) = listener.accept().await?;
        tokio::spawn(forward(link.clone(), request.clone(), socket));
    }
}

async fn forward(link: Link, request: OpenRequest, socket: TcpStream) {
    match link.open(&request).await {
        Ok((stream, address)) => {
            let report = stream.splice(socket, &[], SpliceLimits::default()).await;
            tracing::info!(%address, ?report, "ended");
        }
        // Nothing was sent to the target: another provider may be tried.
        Err(error) => tracing::warn!(%error, "not opened"),
    }
}
