//! Several relays: who has which provider, where opens go, and how one after the other is started anew.
#![allow(missing_docs)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "raw.rs"]
mod raw;
#[path = "support.rs"]
mod support;

use client::{Code, Link, LinkError, OpenError, OpenRequest, Phase, Transport, Ways};
use link::message::{Hello, Open, Peer, Presence, PresenceChange, Present};
use link::{Frame, Kind};
use raw::{PATIENCE, Raw, data, open};
use relay::{Config, Forwarding, Stop};
use std::time::Duration;
use support::{Network, echo, next_epoch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};
use trust::{CertificateRole, PEER_EXPORTER_LABEL, PeerClaims, RelayId, Role};

const DIRECT: Transport = Transport::Direct;

/// Two relays with a link between them; only the second knows the first's address.
async fn two(adapt: impl Fn(&mut Config)) -> (Network, Network) {
    let first = Network::with(&adapt).await;
    let address = first.address.to_string();
    let second = first
        .another(|config| {
            config.peers = vec![address];
            adapt(config);
        })
        .await;
    for relay in [&first, &second] {
        relay.until(|status| status.relays == 1).await;
    }
    (first, second)
}

async fn echo_once(stream: &mut client::Stream, bytes: usize) {
    stream.write_all(&vec![1; bytes]).await.unwrap();
    let mut back = vec![0; bytes];
    timeout(Duration::from_secs(20), stream.read_exact(&mut back)).await.unwrap().unwrap();
}

fn moved(error: OpenError) -> (String, u64) {
    match error {
        OpenError::Moved { address, epoch } => (address, epoch),
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_for_another_relays_provider_is_told_where_it_is() {
    let (first, second) = two(|_| ()).await;
    let who_there = first.member(Role::Provider);
    let epoch = next_epoch();
    let mut who = who_there.who();
    who.epoch = epoch;
    let provider = second.provider_who(who_there, who, &Ways::only(DIRECT)).await;
    first.until(|status| status.elsewhere == 1).await;
    let proxy = first.member(Role::Proxy);
    let contract = first.contract(&proxy, 1 << 20);
    let target = echo().await;
    let here = first.connect(&proxy).await.unwrap();
    let request = provider.request(&contract, target);
    // Whatever start the opener knows of, and whatever it says of hops.
    for provider_epoch in [0, epoch, epoch + 1_000_000] {
        let asked = OpenRequest { provider_epoch, ..request.clone() };
        let told = moved(here.open(&asked).await.unwrap_err());
        assert_eq!(told, (second.address.to_string(), epoch));
    }
    let there = second.connect(&proxy).await.unwrap();
    let (mut stream, _) = there.open(&OpenRequest { provider_epoch: epoch, ..request }).await.unwrap();
    echo_once(&mut stream, 10_000).await;
    assert_eq!((first.until(|status| status.moved == 3).await.bytes, second.status.borrow().moved), (0, 0));
    // Once it has left, it is gone at both.
    provider.link.close();
    first.until(|status| status.elsewhere == 0).await;
    let gone = here.open(&provider.request(&contract, target)).await.unwrap_err();
    assert_eq!(gone.code(), Some(Code::ProviderGone));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opener_that_cannot_go_there_is_served_through_its_own_relay_and_billed_there_once() {
    let (first, second) = two(|_| ()).await;
    let provider = second.provider().await;
    first.until(|status| status.elsewhere == 1).await;
    let proxy = first.member(Role::Proxy);
    let contract = first.contract(&proxy, 1 << 30);
    let here = first.connect(&proxy).await.unwrap();
    let request = OpenRequest { forward: true, ..provider.request(&contract, echo().await) };
    // Streams one after the other and at once, with more bytes than any window.
    let (mut last, _) = here.open(&request).await.unwrap();
    echo_once(&mut last, 3_000_000).await;
    let mut opening = Vec::new();
    for _ in 0..20 {
        let (here, request) = (here.clone(), request.clone());
        opening.push(tokio::spawn(async move {
            let (mut stream, _) = here.open(&request).await.unwrap();
            echo_once(&mut stream, 100_000).await;
            stream.shutdown().await.unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            assert!(rest.is_empty());
        }));
    }
    for opened in opening {
        opened.await.unwrap();
    }
    for relay in [&first, &second] {
        relay.until(|status| status.streams == 1).await;
    }
    // What was carried is billed by the first relay alone.
    let carried = first.status.borrow().bytes;
    assert!(carried > 2 * 5_000_000);
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if first.written.billed() + 20 * 2 * 16 >= carried {
            break;
        }
    }
    assert!(first.written.billed() + 21 * 2 * 16 >= carried && first.written.billed() <= carried);
    assert_eq!((second.written.billed(), second.status.borrow().contracts), (0, 0));
    assert_eq!((first.status.borrow().forwarded, first.status.borrow().moved), (21, 0));

    // The provider's end is told to the opener, as its own relay would.
    provider.link.close();
    let mut byte = [0; 1];
    assert!(timeout(PATIENCE, last.read(&mut byte)).await.unwrap().is_err());
    let gone = here.open(&request).await.unwrap_err();
    assert_eq!(gone.code(), Some(Code::ProviderGone));
    first.until(|status| status.streams == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_may_always_pass_on_or_never() {
    for (forwarding, asked, passes) in [
        (Forwarding::Always, false, true),
        (Forwarding::Never, true, false),
        (Forwarding::Asked, false, false),
    ] {
        let (first, second) = two(|config| config.forwarding = forwarding).await;
        let provider = second.provider().await;
        first.until(|status| status.elsewhere == 1).await;
        let proxy = first.member(Role::Proxy);
        let here = first.connect(&proxy).await.unwrap();
        let contract = first.contract(&proxy, 1 << 20);
        let request = OpenRequest { forward: asked, ..provider.request(&contract, echo().await) };
        match here.open(&request).await {
            Ok((mut stream, _)) if passes => echo_once(&mut stream, 1_000).await,
            Err(OpenError::Moved { .. }) if !passes => {}
            other => panic!("{forwarding:?}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_pass_between_relays_as_they_are_and_both_relays_hold_to_the_credit() {
    let (first, second) = two(|config| config.forwarding = Forwarding::Always).await;
    let (provider, proxy) = (first.member(Role::Provider), first.member(Role::Proxy));
    let mut there = Raw::join(&second, &provider).await;
    first.until(|status| status.elsewhere == 1).await;
    let mut here = Raw::join(&first, &proxy).await;
    let contract = first.contract(&proxy, 1 << 20);
    here.show(&contract).await;
    here.send(&open(&provider, &contract, 1, 65_536)).await;
    let (number, payload) = there.until(Kind::Open).await;
    let passed = Open::decode(&payload).unwrap();
    assert_eq!((passed.provider, passed.opener), (None, Some(proxy.client.0)));
    assert_eq!((passed.hops, passed.forward, passed.window_bytes), (1, false, 65_536));
    let mut opened = Vec::new();
    link::message::Opened { window_bytes: 1_000, seal: &[2; 64] }.write(number, &mut opened);
    there.send(&opened).await;
    here.until(Kind::Opened).await;
    here.send(&data(1, 600)).await;
    assert_eq!(there.until(Kind::Data).await.1.len(), 600);
    there.send(&data(number, 16_376)).await;
    assert_eq!(here.until(Kind::Data).await.1.len(), 16_376);
    // More than the provider has granted goes nowhere; both ends hear.
    here.send(&data(1, 401)).await;
    assert_eq!(here.stream_ended(1).await, Code::FlowControl);
    assert_eq!(there.stream_ended(number).await, Code::FlowControl);
    // An open that nobody answers.
    let mut asked = Vec::new();
    let seal = [1; 96];
    Open {
        provider: Some((provider.client.0, 0)),
        opener: None,
        contract: contract.id.0,
        deadline_ms: 300,
        hops: 0,
        window_bytes: 65_536,
        seal: &seal,
        forward: false,
    }
    .write(2, &mut asked);
    here.send(&asked).await;
    let (number, _) = there.until(Kind::Open).await;
    assert_eq!(here.stream_ended(2).await, Code::Timeout);
    assert_eq!(there.stream_ended(number).await, Code::Timeout);
    // What the provider says of contracts is worth nothing over two relays either.
    here.send(&open(&provider, &contract, 3, 65_536)).await;
    let (number, _) = there.until(Kind::Open).await;
    let mut refused = Vec::new();
    link::message::Refuse { code: Code::ContractSpent, cause: "".into(), retry_after: None }
        .write(number, &mut refused);
    there.send(&refused).await;
    assert_eq!(here.stream_ended(3).await, Code::ProtocolError);
    for relay in [&first, &second] {
        relay.until(|status| status.streams == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_start_at_one_relay_ends_the_older_at_another_which_stays_away() {
    let (first, second) = two(|_| ()).await;
    let member = first.member(Role::Provider);
    let (mut older, mut newer) = (member.who(), member.who());
    (older.epoch, newer.epoch) = (100, 200);
    let old = first.provider_who(member.clone(), older.clone(), &Ways::only(DIRECT)).await;
    second.until(|status| status.elsewhere == 1).await;
    let _new = second.provider_who(member.clone(), newer, &Ways::only(DIRECT)).await;
    let ended = timeout(PATIENCE, old.link.ended()).await.unwrap();
    assert!(matches!(ended, LinkError::Refused { code: Code::Superseded, .. }), "{ended}");
    assert!(ended.is_final());
    first.until(|status| status.providers == 0 && status.elsewhere == 1).await;
    let again = Link::connect(&first.address.to_string(), older, None).await.unwrap_err();
    assert!(matches!(again, LinkError::Refused { code: Code::Superseded, .. }), "{again}");
    second.until(|status| status.providers == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_moves_is_at_its_new_relay_and_keeps_its_streams_at_the_old_one() {
    let (first, second) = two(|_| ()).await;
    let member = first.member(Role::Provider);
    let who = member.who();
    let before = first.provider_who(member.clone(), who.clone(), &Ways::only(DIRECT)).await;
    let proxy = first.member(Role::Proxy);
    let contract = first.contract(&proxy, 1 << 20);
    let here = first.connect(&proxy).await.unwrap();
    let request = before.request(&contract, echo().await);
    let (mut stream, _) = here.open(&request).await.unwrap();
    let after = second.provider_who(member.clone(), who.clone(), &Ways::only(DIRECT)).await;
    first.until(|status| status.providers == 0 && status.elsewhere == 1).await;
    second.until(|status| status.providers == 1 && status.elsewhere == 0).await;
    assert_eq!(moved(here.open(&request).await.unwrap_err()).0, second.address.to_string());
    echo_once(&mut stream, 10_000).await;
    assert!(before.link.is_up());
    // And back: the later connection has it again.
    let again = first.provider_who(member, who, &Ways::only(DIRECT)).await;
    second.until(|status| status.providers == 0 && status.elsewhere == 1).await;
    let (mut other, _) = here.open(&request).await.unwrap();
    echo_once(&mut other, 10_000).await;
    echo_once(&mut stream, 10_000).await;
    drop((after, again));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_breaks_comes_back_and_whoever_came_meanwhile_is_known() {
    let (first, second) = two(|_| ()).await;
    let _here = first.provider().await;
    second.until(|status| status.elsewhere == 1).await;
    // The first relay starts anew: nobody knows its address but the second, which dials.
    first.stop.send_replace(Stop::Now);
    second.until(|status| status.relays == 0).await;
    let _there = second.provider().await;
    let first = first.again(|_| ()).await;
    let status = first.until(|status| status.relays == 1 && status.elsewhere == 1).await;
    assert_eq!(status.providers, 0);
    second.until(|status| status.relays == 1 && status.elsewhere == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relays_find_each_other_by_the_records_and_without_them_by_what_stands_on_the_disk() {
    let first = Network::start().await;
    let second = first.another(|_| ()).await;
    let addresses = vec![first.address.to_string(), second.address.to_string()];
    first.written.0.lock().unwrap().relays.clone_from(&addresses);
    // Asked once at the start, and then every ten seconds and a half of it at most.
    first.until(|status| status.relays == 1).await;
    second.until(|status| status.relays == 1).await;
    first.written.0.lock().unwrap().broken = true;
    first.stop.send_replace(Stop::Now);
    second.until(|status| status.relays == 0).await;
    let first = first.again(|_| ()).await;
    first.until(|status| status.relays == 1).await;
    // It does not keep a link to itself.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(first.status.borrow().relays, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_no_relay_of_the_network_gets_no_link() {
    let network = Network::start().await;
    let elsewhere = Network::start().await;
    let proxy_role = network.root.issue(CertificateRole::Proxy, &["127.0.0.1".to_owned()], clock::unix_ms());
    let relay_role = |of: &Network| {
        of.root.issue(CertificateRole::Relay, &["127.0.0.1".to_owned()], clock::unix_ms()).unwrap()
    };
    let cases = [
        ("another role", proxy_role.unwrap(), network.network()),
        ("another network", relay_role(&elsewhere), network.network()),
        ("a proof for another network", relay_role(&network), elsewhere.network()),
    ];
    for (why, certificate, of) in cases {
        let mut raw = Raw::dial_relay(&network).await;
        let exported = raw.tls.export(PEER_EXPORTER_LABEL).unwrap();
        let relay = RelayId::random();
        let claims = PeerClaims { network: of, relay, epoch: 1 };
        let proof = claims.sign(&certificate, &exported).unwrap();
        let chain = certificate.chain().iter().map(AsRef::as_ref).collect();
        let mut out = Vec::new();
        Peer { version: 1, relay: relay.0, epoch: 1, address: "127.0.0.1:1", chain, proof: &proof }
            .write(&mut out);
        raw.send(&out).await;
        assert_eq!(raw.ended().await, Some(Code::ProofInvalid), "{why}");
    }
    // A client's hello there, and a relay's where clients speak.
    let mut raw = Raw::dial_relay(&network).await;
    let member = network.member(Role::Provider);
    let hello = raw.hello(&member, 1);
    assert!(Hello::decode(Frame::parse(&hello).unwrap().unwrap().payload).is_ok());
    raw.send(&hello).await;
    assert_eq!(raw.ended().await, None);
    let mut raw = Raw::join(&network, &member).await;
    let mut out = Vec::new();
    let present = Present { client: member.client.0, epoch: 1 << 60, dial: 0, at_ms: 0 };
    Presence::write(PresenceChange::Came, [present].into_iter(), &mut out);
    raw.send(&out).await;
    assert_eq!(raw.ended().await, Some(Code::ProtocolError));
    assert_eq!(network.status.borrow().relays, 0);
    assert_eq!(network.status.borrow().elsewhere, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_relay_may_not_say_on_its_link_ends_it() {
    let network = Network::start().await;
    let provider = network.member(Role::Provider);
    let mut there = Raw::join(&network, &provider).await;
    let contract = network.contract(&network.member(Role::Proxy), 1 << 20);
    // An open that was passed on twice, one that was not, one for nobody, and one for nobody here are refused, not sent on.
    let mut peer = Raw::join_relay(&network, RelayId::random(), 1).await;
    let seal = [1; 96];
    let passed = Open {
        provider: Some((provider.client.0, 0)),
        opener: Some(uuid::Uuid::from_u128(3)),
        contract: contract.id.0,
        deadline_ms: 5_000,
        hops: 1,
        window_bytes: 65_536,
        seal: &seal,
        forward: false,
    };
    let unknown = Some((uuid::Uuid::from_u128(9), 0));
    for (number, open, code) in [
        (1, Open { hops: 2, ..passed }, Code::ProtocolError),
        (3, Open { hops: 0, ..passed }, Code::ProtocolError),
        (5, Open { opener: None, ..passed }, Code::ProtocolError),
        (7, Open { provider: unknown, ..passed }, Code::ProviderGone),
        (9, Open { provider: Some((provider.client.0, 1 << 60)), ..passed }, Code::Stale),
    ] {
        let mut out = Vec::new();
        open.write(number, &mut out);
        peer.send(&out).await;
        assert_eq!(peer.stream_ended(number).await, code, "{number}");
    }
    let mut out = Vec::new();
    passed.write(11, &mut out);
    peer.send(&out).await;
    let (number, payload) = there.until(Kind::Open).await;
    assert_eq!(Open::decode(&payload).unwrap().opener, passed.opener);
    // The relay is lost: so is the stream.
    let mut out = Vec::new();
    passed.write(12, &mut out);
    peer.send(&out).await;
    assert_eq!(peer.ended().await, Some(Code::ProtocolError), "a number of the other side's");
    assert_eq!(there.stream_ended(number).await, Code::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_relay_after_the_other_starts_anew_and_every_open_is_served() {
    let adapt = |config: &mut Config| {
        config.drain_spread_ms = 300;
        config.drain_deadline_ms = 4_000;
        config.forwarding = Forwarding::Asked;
    };
    let (first, second) = two(adapt).await;
    let target = echo().await;
    let mut homes = vec![first, second];
    let mut providers = Vec::new();
    for number in 0..6 {
        let member = homes[0].member(Role::Provider);
        providers.push(Roaming::start(member, homes[number % 2].address.to_string()));
    }
    for relay in &homes {
        relay.until(|status| status.providers == 3).await;
    }
    let proxy = homes[0].member(Role::Proxy);
    let contract = homes[0].contract(&proxy, 1 << 30);
    let requests: Vec<_> = providers.iter().map(|roaming| roaming.request(&contract, target)).collect();
    let addresses: Vec<_> = homes.iter().map(|relay| relay.address.to_string()).collect();
    let mut opener = Opener { proxy, addresses, links: Vec::new() };
    // Streams that stand before the first goes.
    let mut standing = Vec::new();
    for request in &requests {
        standing.push(opener.open(request).await);
    }
    let (mut opens, mut longest) = (0, Duration::ZERO);
    for turn in 0..2 {
        let going = homes.remove(0);
        going.stop.send_replace(Stop::Drain);
        let began = Instant::now();
        let address = going.address;
        let peers = vec![homes[0].address.to_string()];
        let restarting = tokio::spawn(going.again(move |config| {
            config.peers = peers;
            adapt(config);
        }));
        while !restarting.is_finished() {
            assert!(began.elapsed() < Duration::from_secs(40), "the drain does not end");
            for request in &requests {
                let asked = Instant::now();
                let mut stream = opener.open(request).await;
                longest = longest.max(asked.elapsed());
                echo_once(&mut stream, 1_000).await;
                opens += 1;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let again = restarting.await.unwrap();
        assert_eq!(again.address, address);
        homes[0].until(|status| status.providers == 6 && status.relays == 1).await;
        homes.push(again);
        if turn == 0 {
            // Those of the second relay have not been touched, those of the first have had their time.
            for stream in standing.iter_mut().skip(1).step_by(2) {
                echo_once(stream, 10_000).await;
            }
        }
    }
    assert!(opens > 20, "{opens}");
    // A machine ten times slower has room; an open that waits for a relay's back-off has not.
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_with_its_last_stream_and_idle_openers_do_not_hold_it_up() {
    let adapt = |config: &mut Config| {
        config.drain_spread_ms = 100;
        config.drain_deadline_ms = 120_000;
    };
    let (first, second) = two(adapt).await;
    let roaming = Roaming::start(first.member(Role::Provider), first.address.to_string());
    first.until(|status| status.providers == 1).await;
    let (proxy, idle) = (first.member(Role::Proxy), first.member(Role::Proxy));
    let contract = first.contract(&proxy, 1 << 20);
    let (here, idle) = (first.connect(&proxy).await.unwrap(), first.connect(&idle).await.unwrap());
    let request = roaming.request(&contract, echo().await);
    let (mut stream, _) = here.open(&request).await.unwrap();
    first.stop.send_replace(Stop::Drain);
    second.until(|status| status.providers == 1).await;
    let ended = timeout(PATIENCE, idle.ended()).await.unwrap();
    assert!(matches!(ended, LinkError::Refused { code: Code::Draining, .. }), "{ended}");
    assert!(!ended.is_final());
    echo_once(&mut stream, 10_000).await;
    assert!(!first.running.is_finished());
    // Whoever has streams is told where the provider is now.
    assert_eq!(moved(here.open(&request).await.unwrap_err()).0, second.address.to_string());
    drop(stream);
    timeout(PATIENCE, first.running).await.expect("it waits").unwrap().unwrap();
}

/// A provider that goes where its relay sends it, and comes back after every end.
struct Roaming {
    provider: support::Member,
    keeping: tokio::task::JoinHandle<()>,
}

impl Drop for Roaming {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

impl Roaming {
    fn start(member: support::Member, address: String) -> Self {
        let who = member.who();
        let (opens, incoming) = client::Opens::channel(who.epoch);
        tokio::spawn(support::serve(incoming));
        let keeping = tokio::spawn(async move {
            let mut address = address;
            // The old link carries until the new one stands, and lives as long as its streams.
            let mut _before = None;
            loop {
                let Ok(link) = Link::connect(&address, who.clone(), Some(opens.clone())).await else {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let mut phase = link.phase();
                let over = phase.wait_for(|phase| !matches!(phase, Phase::Up)).await.unwrap().clone();
                if let Phase::Draining { spread, addresses, .. } = over {
                    tokio::time::sleep(spread.mul_f64(fastrand::f64())).await;
                    address.clone_from(addresses.first().expect("somewhere to go"));
                }
                _before = Some(link);
            }
        });
        Self { provider: member, keeping }
    }

    fn request(&self, contract: &client::Contract, target: std::net::SocketAddr) -> OpenRequest {
        OpenRequest {
            provider: self.provider.client,
            provider_epoch: 0,
            provider_key: self.provider.identity.public().seal_key(),
            target: client::Target { host: client::Host::Address(target.ip()), port: target.port() },
            family: client::Family::Any,
            contract: contract.clone(),
            deadline: Duration::from_secs(10),
            forward: false,
        }
    }
}

/// An opener with a link to each relay that it has to do with.
struct Opener {
    proxy: support::Member,
    addresses: Vec<String>,
    links: Vec<(String, Link)>,
}

impl Opener {
    async fn link(&mut self, address: &str) -> Option<Link> {
        self.links.retain(|(_, link)| !matches!(*link.phase().borrow(), Phase::Ended(_)));
        if let Some((_, link)) = self.links.iter().find(|(to, _)| to == address) {
            return Some(link.clone());
        }
        let link = Link::connect(address, self.proxy.who(), None).await.ok()?;
        self.links.push((address.to_owned(), link.clone()));
        Some(link)
    }

    /// At any relay, following where it is sent.
    async fn open(&mut self, request: &OpenRequest) -> client::Stream {
        let mut last = None;
        for address in self.addresses.clone() {
            let Some(link) = self.link(&address).await else { continue };
            match link.open(request).await {
                Ok((stream, _)) => return stream,
                Err(OpenError::Moved { address, .. }) => {
                    let there = self.link(&address).await.expect("a relay that was named is there");
                    match there.open(request).await {
                        Ok((stream, _)) => return stream,
                        Err(error) => last = Some(error),
                    }
                }
                Err(error) => last = Some(error),
            }
        }
        panic!("no relay has opened it: {last:?}")
    }
}
