//! Two sites and the wire between them: a partition, one of a single direction, a way that is barred, and a wire that loses packets.
//!
//! Relay, proxy and providers with even numbers are one side, those with odd numbers the other. The hub (database, api, customers,
//! target) is reached by both all the time: what is looked at is what the sides do without each other.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;

use super::stage::Stage;
use crate::namespaces::{Namespaces, Site};
use crate::network::{Network, NetworkOptions};
use crate::traffic::{Traffic, TrafficOptions};

/// How long each state of the wire lasts.
const SHORT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(120);
/// Everything is as before within this time after healing: links of relays come back with a pause of their own, and a connection
/// that was cut off is noticed by its pings.
const NORMAL_LIMIT: Duration = Duration::from_secs(60);
/// The provider that is started anew on the other side.
const COPIED: usize = 2;
/// See design: every twentieth packet is lost, and the others take a tenth of a second.
const LOSS: f64 = 0.05;
const DELAY_MS: u32 = 100;

pub(super) fn size(options: &mut NetworkOptions) {
    options.relays = 2;
    options.proxies = 2;
    options.providers = 4;
}

/// While they come up, providers reach the relay of their side only, so that it is known who is where.
pub(super) fn sides_at_start(options: &NetworkOptions) -> anyhow::Result<()> {
    let namespaces = options.namespaces.as_ref().context("no namespaces")?;
    for number in 0..options.providers {
        let provider = site(options, options.provider_site(number))?;
        let other = site(options, options.relay_site(1 - number % 2))?;
        namespaces.block(&provider, &other)?;
        namespaces.block(&other, &provider)?;
    }
    Ok(())
}

/// Customers at each proxy, who ask for a provider of its side.
pub(super) fn own_side(network: &Network) -> Vec<(SocketAddr, String)> {
    let proxies = network.proxy_addresses().into_iter().enumerate();
    proxies.map(|(side, proxy)| (proxy, asks_for(network, side))).collect()
}

/// Customers at each proxy, who ask for a provider of the other side.
fn other_side(network: &Network) -> Vec<(SocketAddr, String)> {
    let proxies = network.proxy_addresses().into_iter().enumerate();
    proxies.map(|(side, proxy)| (proxy, asks_for(network, 1 - side))).collect()
}

fn asks_for(network: &Network, provider: usize) -> String {
    let status = network.provider_status(provider);
    let name = status["provider"].as_str().unwrap_or_default();
    format!("-provider-{}", name.replace('-', ""))
}

pub(super) fn run(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let options = stage.network.options().clone();
    let namespaces = options.namespaces.clone().context("no namespaces")?;
    let sides = Sides::of(&options)?;
    namespaces.heal()?;
    let few = TrafficOptions { held: 2, open_every: Duration::from_millis(500) };
    let across = stage.further(other_side(&stage.network), few)?;
    opens_across(stage, &across, "streams go from side to side before anything is done");

    stage.event("the sides are parted; on the other one a provider is started anew");
    sides.part(&namespaces, true)?;
    let copy = stage.network.copy_provider(COPIED)?;
    let stands = stage.until(NORMAL_LIMIT, |stage| is_connected(&stage.network, copy));
    stage.came_within("the newer start of the provider is connected on its side", stands, NORMAL_LIMIT);
    stage.pass(stage.span(SHORT, LONG));
    untouched(stage, "parted");

    stage.event("the wire is healed");
    namespaces.heal()?;
    opens_across(stage, &across, "streams go from side to side again");
    let one = stage.until(NORMAL_LIMIT, |stage| {
        !is_connected(&stage.network, COPIED)
            && is_connected(&stage.network, copy)
            && owners(stage) == Some(1)
    });
    stage.came_within("one start of the provider is connected, the newer one", one, NORMAL_LIMIT);

    stage.event("nothing passes from the first side to the second; the other way is free");
    sides.part(&namespaces, false)?;
    stage.pass(stage.span(SHORT, LONG));
    untouched(stage, "in one direction");
    namespaces.heal()?;
    opens_across(stage, &across, "streams go from side to side again after that");

    stage.event("the first proxy does not reach the second relay");
    let proxy = site(&options, options.proxy_site(0))?;
    let relay = site(&options, options.relay_site(1))?;
    namespaces.block(&proxy, &relay)?;
    namespaces.block(&relay, &proxy)?;
    let around = stage.further(other_side(&stage.network)[..1].to_vec(), few)?;
    opens_across(stage, &around, "its streams go through the first");
    drop(around);
    namespaces.heal()?;

    stage.event("every twentieth packet is lost, and the others take 100 ms");
    let before = stage.traffic().sums().rounds;
    namespaces.worse(LOSS, DELAY_MS)?;
    stage.pass(stage.span(SHORT, LONG));
    untouched(stage, "with a bad wire");
    let rounds = stage.traffic().sums().rounds - before;
    stage.check("answers over the bad wire", rounds, "more than 0", rounds > 0);
    namespaces.heal()?;
    opens_across(stage, &across, "streams go from side to side at the end");
    for number in (0..options.providers).filter(|number| *number != COPIED) {
        let connections = stage.network.provider_connections(number);
        stage.check(&format!("connections of provider-{number}"), connections, "1", connections == 1);
    }
    Ok(())
}

/// No stream that stays on one side has noticed anything since the drill began.
fn untouched(stage: &mut Stage<'_>, when: &str) {
    let sums = stage.traffic().sums();
    stage.at_most(&format!("streams of one side broken, {when}"), sums.broken, 0);
    stage.at_most(&format!("streams of one side refused, {when}"), sums.refused, 0);
}

fn opens_across(stage: &mut Stage<'_>, across: &Traffic, what: &str) {
    let before = across.sums().opened;
    // Two at each proxy, and more than were under way.
    let opened = stage.until(NORMAL_LIMIT, |_| across.sums().opened >= before + 6);
    stage.came_within(what, opened, NORMAL_LIMIT);
}

fn is_connected(network: &Network, provider: usize) -> bool {
    network.provider_status(provider)["link"]["state"] == "connected"
}

/// Connections of the copied provider that the records call open.
fn owners(stage: &Stage<'_>) -> Option<i64> {
    let status = stage.network.provider_status(COPIED);
    let name = status["provider"].as_str()?;
    let sql = format!("select count(*) from connection where client = '{name}' and disconnected_at is null");
    stage.network.number(&sql).ok().flatten()
}

struct Sides {
    first: Vec<Site>,
    second: Vec<Site>,
}

impl Sides {
    fn of(options: &NetworkOptions) -> anyhow::Result<Self> {
        let relays = (0..options.relays).map(|number| (number, options.relay_site(number)));
        let proxies = (0..options.proxies).map(|number| (number, options.proxy_site(number)));
        let providers = (0..options.providers).map(|number| (number, options.provider_site(number)));
        let mut sides = Self { first: Vec::new(), second: Vec::new() };
        for (number, at) in relays.chain(proxies).chain(providers).chain([(1, options.spare_site())]) {
            let side = if number % 2 == 0 { &mut sides.first } else { &mut sides.second };
            side.push(site(options, at)?);
        }
        Ok(sides)
    }

    /// Nothing passes from the first side to the second, nor back, if it is to be both.
    fn part(&self, namespaces: &Namespaces, both: bool) -> anyhow::Result<()> {
        for first in &self.first {
            for second in &self.second {
                namespaces.block(first, second)?;
                if both {
                    namespaces.block(second, first)?;
                }
            }
        }
        Ok(())
    }
}

fn site(options: &NetworkOptions, number: usize) -> anyhow::Result<Site> {
    options.site(number).context("no such site")
}
