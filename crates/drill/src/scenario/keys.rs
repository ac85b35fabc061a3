//! Keys change, and clients are put out: nobody else must notice.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use client::{Code, Joining, Link, LinkError, Membership};
use trust::{ClientId, Role};

use super::stage::Stage;
use crate::clock;
use crate::network::NetworkOptions;
use crate::postgres::StopMode;

/// A rotation waits for a relay that has just died until its last beat is 30 s old, then settles, and readers read every 10 s.
const ROTATION_LIMIT: Duration = Duration::from_secs(120);
const SETTLE_S: &str = "5";
/// A change is heard within 10 s, and a client is told at once.
const HEARD_LIMIT: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);
/// Clients that refresh their token, dial, and leave again; and those that stay.
const COMERS: usize = 3;
const STAYERS: usize = 2;
/// Dials with a token that is refused.
const RETRIES: u32 = 200;

/// One relay, one proxy, three providers.
pub(super) fn size(options: &mut NetworkOptions) {
    options.relays = 1;
    options.proxies = 1;
    options.providers = 3;
}

pub(super) fn rotation(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let relay = stage.network.relays[0].address().context("the relay listens")?.to_string();
    let folder = tempfile::tempdir()?;
    let customer = stage.network.customer();
    let joining = |name: &str| -> anyhow::Result<Joining> {
        let code = customer.join_code(Role::App)?;
        let code = code.parse().map_err(|_| anyhow::anyhow!("no join code"))?;
        let label = name.to_owned();
        Ok(Joining { link: customer.link().clone(), role: Role::App, code, label, country: None })
    };
    let mut members = Vec::new();
    for number in 0..COMERS + STAYERS {
        let name = format!("app-{number}");
        let (joining, folder) = (joining(&name)?, folder.path().join(&name));
        members.push(block_on(async { Ok(Membership::join(&folder, &joining).await?) })?);
    }
    let crowd = Crowd::start(relay, members)?;
    let connections = connections(stage);
    let broken = stage.traffic().sums().broken;
    stage.pass(Duration::from_secs(5));
    let first = crowd.seen();

    stage.event("a relay that has seen nothing is there, and dies at once");
    // Its last word stands in the database, as that of a process that was killed.
    stage.network.ask(
        "insert into relay_beat (relay, network, address, epoch, connections, draining, started_at, beat_at)
         select gen_random_uuid(), network, '127.0.0.1:9', 1, 0, false, now(), now() from network",
    )?;
    stage.event("the token key is rotated");
    let mut rotation = stage.network.program();
    let file = stage.network.file("api.toml");
    rotation.args(["keys", "rotate", "--json", "--settle-s", SETTLE_S, "--config"]).arg(file);
    let mut rotation = rotation.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut code = None;
    let took = stage.until(ROTATION_LIMIT, |_| {
        code = rotation.try_wait().ok().flatten();
        code.is_some()
    });
    // One that never ends goes with the drill.
    let _ = rotation.kill();
    let (mut said, mut complained) = (String::new(), String::new());
    rotation.stdout.take().context("its output")?.read_to_string(&mut said)?;
    rotation.stderr.take().context("its complaints")?.read_to_string(&mut complained)?;
    let done = code.is_some_and(|code| code.success());
    stage.came_within("the rotation ended, though a relay had died", took.filter(|_| done), ROTATION_LIMIT);
    ensure!(done, "the rotation failed: {said}{complained}");
    let key =
        serde_json::from_str::<serde_json::Value>(&said)?["key"].as_str().unwrap_or_default().to_owned();
    stage.event(format!("key {key} signs"));
    stage.pass(Duration::from_secs(10));

    let seen = crowd.stop()?;
    stage.check(
        "tokens refreshed, and shown to the relay",
        seen.rounds,
        "more than before the rotation",
        seen.rounds > first.rounds + 20,
    );
    stage.check(
        "refused refreshes and dials",
        format!("{:?}", seen.refused),
        "none",
        seen.refused.is_empty(),
    );
    stage.at_most("sessions that ended", seen.ended, 0);
    let named = seen.last_keys.iter().filter(|named| **named == key).count();
    stage.check("clients whose last token is signed by the new key", named, COMERS, named == COMERS);
    let now = self::connections(stage);
    let again = now.iter().zip(&connections).map(|(now, before)| now.abs_diff(*before)).sum();
    stage.at_most("times that a provider had to connect again", again, 0);
    let broken = stage.traffic().sums().broken - broken;
    stage.at_most("streams that broke", broken, 0);
    Ok(())
}

pub(super) fn revoked(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let relay = stage.network.relays[0].address().context("the relay listens")?.to_string();
    let client = client_of(stage, 0)?.to_string();
    let connections = connections(stage);
    stage.event("a provider is revoked");
    let file = stage.network.file("api.toml");
    let mut command = stage.network.program();
    let revoked = command.args(["keys", "revoke", &client, "--now", "--config"]).arg(file).output()?;
    let complained = String::from_utf8_lossy(&revoked.stderr).into_owned();
    stage.check("every relay and api holds the list", complained, "exit code 0", revoked.status.success());
    let held = stage.until(HEARD_LIMIT, |stage| {
        let status = stage.network.provider_status(0);
        status["held"]["code"] == "revoked"
    });
    stage.came_within("the provider is told that it was revoked, and stays away", held, HEARD_LIMIT);
    let accepted = stage.network.provider_connections(0);

    stage.event("another one is disabled");
    stage.network.customer().disable(client_of(stage, 1)?)?;
    let out = stage.until(HEARD_LIMIT, |stage| stage.network.provider_status(1)["held"]["code"] == "revoked");
    stage.came_within("it is put out within one interval", out, HEARD_LIMIT);
    let now = self::connections(stage);
    stage.at_most("times that the third had to connect again", now[2].saturating_sub(connections[2]), 0);

    stage.event(format!("{RETRIES} dials with the revoked token"));
    let membership = stage.network.file("provider-0");
    stage.network.providers[0].kill();
    stage.pass(Duration::from_secs(1));
    let quiet = bytes_up(stage);
    stage.pass(Duration::from_secs(10));
    let healthy = bytes_up(stage) - quiet;
    let before = bytes_up(stage);
    let began = clock::now();
    let codes = refused_dials(&membership, &relay, RETRIES)?;
    let span = began.elapsed().as_secs_f64().max(1.0);
    let spent = bytes_up(stage) - before;
    stage.check("answers", format!("{codes} times revoked"), RETRIES, codes == RETRIES);
    // Beats and reads go on; nothing comes on top.
    let bar = (healthy as f64 * (span / 10.0 + 1.0)) as u64 + 2_000;
    stage.at_most("bytes from the relay to the database meanwhile", spent, bar);
    stage.at_most(
        "dials of the revoked provider by itself",
        stage.network.provider_connections(0).saturating_sub(accepted),
        0,
    );

    stage.event("PostgreSQL is stopped; the relay is killed, and starts again");
    stage.network.postgres.stop(StopMode::Fast)?;
    stage.network.relays[0].kill();
    stage.network.relays[0].start()?;
    let refused = refused_dials(&membership, &relay, 1)?;
    stage.check("the revoked token without a database", refused, 1, refused == 1);
    let disabled = stage.network.file("provider-1");
    stage.network.providers[1].kill();
    let refused = refused_dials(&disabled, &relay, 1)?;
    stage.check("the disabled one's token without a database", refused, 1, refused == 1);
    let back = stage.until(Duration::from_secs(30), |stage| {
        stage.network.provider_status(2)["link"]["state"] == "connected"
    });
    stage.came_within("the third is back on its token", back, Duration::from_secs(30));
    stage.network.postgres.start_again()?;
    Ok(())
}

fn connections(stage: &Stage<'_>) -> Vec<u64> {
    (0..stage.network.providers.len()).map(|number| stage.network.provider_connections(number)).collect()
}

fn client_of(stage: &Stage<'_>, number: usize) -> anyhow::Result<ClientId> {
    let glance = client::Glance::at(&stage.network.file(&format!("provider-{number}")))?;
    Ok(glance.context("the provider has joined")?.client)
}

fn bytes_up(stage: &Stage<'_>) -> u64 {
    stage.network.paths.relays[0].counts().bytes_up
}

/// How many of so many dials with a membership are refused as revoked.
fn refused_dials(folder: &Path, relay: &str, count: u32) -> anyhow::Result<u32> {
    let membership = Membership::open(folder)?;
    block_on(async {
        let mut refused = 0;
        for _ in 0..count {
            let who = membership.identification(membership.take_epoch()?);
            let dialled = Link::connect(relay, who, None).await;
            refused += u32::from(matches!(dialled, Err(LinkError::Refused { code: Code::Revoked, .. })));
        }
        Ok(refused)
    })
}

/// Clients that come and go, and clients that stay, while something is done to the keys.
struct Crowd {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    thread: JoinHandle<anyhow::Result<()>>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    rounds: u64,
    refused: Vec<String>,
    ended: u64,
    /// The name of the key in each comer's last token.
    last_keys: Vec<String>,
}

impl Crowd {
    fn start(relay: String, members: Vec<Membership>) -> anyhow::Result<Self> {
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Seen::default())));
        let (stopped, told) = (Arc::clone(&stop), Arc::clone(&seen));
        let thread = std::thread::Builder::new()
            .name("crowd".to_owned())
            .spawn(move || block_on(crowd(relay, members, stopped, told)))?;
        Ok(Self { stop, seen, thread })
    }

    fn seen(&self) -> Seen {
        lock(&self.seen).clone()
    }

    fn stop(self) -> anyhow::Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the crowd's thread panicked"))??;
        Ok(lock(&self.seen).clone())
    }
}

async fn crowd(
    relay: String,
    mut comers: Vec<Membership>,
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
) -> anyhow::Result<()> {
    let mut links = Vec::new();
    for member in comers.split_off(COMERS) {
        let who = member.identification(member.take_epoch()?);
        links.push(Link::connect(&relay, who, None).await?);
    }
    while !stop.load(Ordering::Relaxed) {
        for member in &comers {
            if let Err(error) = member.refresh().await {
                refuse(&seen, format!("refresh: {error}"));
            }
            let who = member.identification(member.take_epoch()?);
            match Link::connect(&relay, who, None).await {
                Ok(link) => link.close(),
                Err(error) => refuse(&seen, format!("dial: {error}")),
            }
            lock(&seen).rounds += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }
    let mut seen = lock(&seen);
    seen.ended = links.iter().filter(|link| !link.is_up()).count() as u64;
    seen.last_keys = comers.iter().map(|member| key_of(&member.token())).collect();
    Ok(())
}

fn refuse(seen: &Mutex<Seen>, what: String) {
    const MOST: usize = 20;
    let mut seen = lock(seen);
    if seen.refused.len() < MOST {
        seen.refused.push(what);
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name of the key that a token says it is signed by (RFC 7515 §4.1.4).
fn key_of(token: &str) -> String {
    let header = token.split('.').next().unwrap_or_default();
    let header = BASE64_URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    let header: serde_json::Value = serde_json::from_slice(&header).unwrap_or_default();
    header["kid"].as_str().unwrap_or_default().to_owned()
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
