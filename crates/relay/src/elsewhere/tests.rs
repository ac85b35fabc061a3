use super::*;
use uuid::Uuid;

const PROVIDER: ClientId = ClientId(Uuid::from_u128(77));

fn relay(number: u128) -> RelayId {
    RelayId(Uuid::from_u128(number))
}

const fn claim(epoch: u64, dial: u64, at_ms: u64) -> Claim {
    Claim { epoch, dial, at_ms }
}

const fn at(seconds: u64) -> Moment {
    Moment::from_micros(seconds * 1_000_000)
}

fn introduced(number: u128, epoch: u64, dialled: bool) -> Introduced {
    Introduced { relay: relay(number), epoch, address: format!("relay-{number}:443").into(), dialled }
}

/// Relay 5 as it hears others, a link being a number.
fn hearing() -> Elsewhere<u32> {
    Elsewhere::new(relay(5))
}

#[test]
fn a_newer_start_wins_and_of_one_start_the_later_connection_whatever_the_clocks_say() {
    let mut elsewhere = hearing();
    assert_eq!(elsewhere.link_up(introduced(1, 1, true), 1, at(0)), Linked::Holds(None));
    elsewhere.came(relay(1), PROVIDER, claim(7, 2, 9_000));
    assert!(!elsewhere.holds(PROVIDER, claim(6, 9, 99_000)));
    assert!(!elsewhere.holds(PROVIDER, claim(7, 1, 99_000)));
    assert!(elsewhere.holds(PROVIDER, claim(7, 3, 1)));
    assert!(elsewhere.holds(PROVIDER, claim(8, 0, 1)));
    // One that does not number its connections comes later than what was heard of.
    let own = elsewhere.claim(PROVIDER, 7, 2, 5_000);
    assert_eq!(own, claim(7, 2, 9_001));
    assert!(elsewhere.holds(PROVIDER, own));
    // The same claim at two relays, which honest clients do not make: one of them has it, at both.
    let (mut there, same) = (Elsewhere::<u32>::new(relay(1)), claim(7, 2, 9_000));
    there.link_up(introduced(5, 1, false), 1, at(0));
    there.came(relay(5), PROVIDER, same);
    assert_ne!(elsewhere.holds(PROVIDER, same), there.holds(PROVIDER, same));
}

#[test]
fn what_a_lost_relay_has_said_tells_where_to_go_but_keeps_nobody_out_who_comes_back() {
    let mut elsewhere = hearing();
    elsewhere.link_up(introduced(1, 1, true), 1, at(0));
    elsewhere.came(relay(1), PROVIDER, claim(7, 2, 9_000));
    elsewhere.whole(relay(1));
    elsewhere.link_down(relay(1), &1, at(20));
    let there = elsewhere.find(PROVIDER).unwrap();
    assert_eq!((&*there.address, there.link), ("relay-1:443", None));
    assert!(elsewhere.holds(PROVIDER, claim(7, 1, 1)), "the same start");
    assert!(!elsewhere.holds(PROVIDER, claim(6, 1, 1)), "an older one");
    elsewhere.forget(at(20) + KEPT);
    assert!(elsewhere.find(PROVIDER).is_none());
}

#[test]
fn a_relay_that_starts_anew_or_links_anew_has_whom_it_names_then() {
    let mut elsewhere = hearing();
    let other = ClientId(Uuid::from_u128(78));
    elsewhere.link_up(introduced(1, 1, true), 1, at(0));
    for client in [PROVIDER, other] {
        elsewhere.came(relay(1), client, claim(7, 2, 9_000));
    }
    elsewhere.whole(relay(1));
    // The same start over another link: it is believed to have both until it has named all.
    elsewhere.link_up(introduced(1, 1, true), 2, at(30));
    elsewhere.came(relay(1), other, claim(7, 2, 9_000));
    assert!(elsewhere.find(PROVIDER).is_some());
    elsewhere.whole(relay(1));
    assert!(elsewhere.find(PROVIDER).is_none() && elsewhere.find(other).is_some());
    // What comes from the link before is over.
    elsewhere.link_down(relay(1), &1, at(31));
    assert!(elsewhere.is_linked(relay(1)));
    // Another start has nobody, and an older one is not heard.
    elsewhere.link_up(introduced(1, 2, true), 3, at(60));
    assert!(elsewhere.find(other).is_none());
    assert_eq!(elsewhere.link_up(introduced(1, 1, true), 4, at(90)), Linked::Unwanted);
    // A claim that is not the one at hand is not what has left.
    elsewhere.came(relay(1), other, claim(8, 1, 1));
    elsewhere.left(relay(1), other, claim(7, 2, 9_000));
    assert!(elsewhere.find(other).is_some());
    elsewhere.left(relay(1), other, claim(8, 1, 1));
    assert!(elsewhere.find(other).is_none());
}

#[test]
fn two_relays_that_dial_each_other_keep_the_same_one_of_their_links() {
    for first_at_own in [true, false] {
        for first_at_other in [true, false] {
            // Link 1 is dialled by relay 3, link 2 by relay 5.
            let (mut own, mut other) = (Elsewhere::<u32>::new(relay(3)), Elsewhere::<u32>::new(relay(5)));
            let mut kept = Vec::new();
            for (here, peer, first) in [(&mut own, 5, first_at_own), (&mut other, 3, first_at_other)] {
                let mut links = [(1, peer == 5), (2, peer == 3)];
                if !first {
                    links.reverse();
                }
                let mut stands = None;
                for (link, dialled) in links {
                    if here.link_up(introduced(peer, 1, dialled), link, at(1)) != Linked::Unwanted {
                        stands = Some(link);
                    }
                }
                kept.push(stands);
            }
            assert_eq!(kept, [Some(1), Some(1)], "the one of the smaller name");
        }
    }
    // Long after, whoever dials has lost the link that stands here.
    let mut own = hearing();
    own.link_up(introduced(1, 1, false), 1, at(0));
    assert_eq!(own.link_up(introduced(1, 1, true), 2, at(60)), Linked::Holds(Some(1)));
    // Dialled again by the same end at once: the first has broken.
    assert_eq!(own.link_up(introduced(1, 1, true), 3, at(61)), Linked::Holds(Some(2)));
}

#[test]
fn relays_and_providers_beyond_their_bounds_are_not_taken_in() {
    let mut elsewhere = hearing();
    for number in 0..MAX_PEERS as u128 {
        let linked = elsewhere.link_up(introduced(100 + number, 1, true), number as u32, at(0));
        assert_eq!(linked, Linked::Holds(None));
    }
    assert_eq!(elsewhere.link_up(introduced(99, 1, true), 99, at(0)), Linked::Unwanted);
    assert_eq!(elsewhere.link_up(introduced(5, 1, true), 5, at(0)), Linked::Unwanted, "itself");
    // Whose link broke long ago makes room.
    elsewhere.link_down(relay(100), &0, at(0));
    assert_eq!(elsewhere.link_up(introduced(99, 1, true), 99, at(0) + KEPT), Linked::Holds(None));
    let mut taken = 0_u64;
    while elsewhere.came(relay(99), ClientId(Uuid::from_u64_pair(taken, taken)), claim(1, 1, 1)) {
        taken += 1;
    }
    assert_eq!(taken, MAX_ELSEWHERE as u64);
}

#[test]
fn seventy_five_thousand_providers_elsewhere_cost_less_than_a_hundred_bytes_each() {
    assert_eq!(size_of::<(ClientId, Claim)>(), 40);
    let mut elsewhere = hearing();
    elsewhere.link_up(introduced(1, 1, true), 1, at(0));
    for number in 0..75_000 {
        elsewhere.came(relay(1), ClientId(Uuid::from_u128(number)), claim(1, 1, 1));
    }
    elsewhere.whole(relay(1));
    // A table of a power of two, filled to seven eighths at most, with a byte for each place.
    let places = elsewhere.peers[&relay(1)].has.capacity() * 8 / 7;
    assert!(places * 41 < 75_000 * 100, "{} bytes", places * 41);
}

/// A relay of a network in which messages take their time, links break, and one provider comes and goes.
struct Node {
    elsewhere: Elsewhere<u64>,
    own: Option<Claim>,
}

#[derive(Clone, Copy)]
enum News {
    Came(Claim),
    Left(Claim),
    Whole,
}

struct Network {
    nodes: Vec<Node>,
    /// From one to another: the link's number, and what is on its way.
    ways: HashMap<(usize, usize), (u64, std::collections::VecDeque<News>)>,
    links: u64,
    now: u64,
}

impl Network {
    fn new(count: usize) -> Self {
        let node = |number: usize| Node { elsewhere: Elsewhere::new(relay(number as u128)), own: None };
        Self { nodes: (0..count).map(node).collect(), ways: HashMap::new(), links: 0, now: 0 }
    }

    fn connect(&mut self, one: usize, other: usize) {
        if self.ways.contains_key(&(one, other)) {
            return;
        }
        self.links += 1;
        for (here, there) in [(one, other), (other, one)] {
            let who = introduced(there as u128, 1, here == one);
            assert_ne!(self.nodes[here].elsewhere.link_up(who, self.links, at(self.now)), Linked::Unwanted);
            let mut news: std::collections::VecDeque<_> =
                self.nodes[here].own.map(News::Came).into_iter().collect();
            news.push_back(News::Whole);
            self.ways.insert((here, there), (self.links, news));
        }
    }

    fn cut(&mut self, one: usize, other: usize) {
        for (here, there) in [(one, other), (other, one)] {
            if let Some((link, _)) = self.ways.remove(&(here, there)) {
                self.nodes[here].elsewhere.link_down(relay(there as u128), &link, at(self.now));
            }
        }
    }

    fn tell(&mut self, from: usize, news: News) {
        for ((here, _), (_, queue)) in &mut self.ways {
            if *here == from {
                queue.push_back(news);
            }
        }
    }

    /// The provider's start dials this relay.
    fn come(&mut self, to: usize, epoch: u64, dial: u64) {
        let node = &mut self.nodes[to];
        let own = node.elsewhere.claim(PROVIDER, epoch, dial, self.now);
        if node.own.is_none_or(|before| before < own) && node.elsewhere.holds(PROVIDER, own) {
            node.own = Some(own);
            self.tell(to, News::Came(own));
        }
    }

    fn deliver(&mut self, from: usize, to: usize) -> bool {
        let Some(news) = self.ways.get_mut(&(from, to)).and_then(|(_, queue)| queue.pop_front()) else {
            return false;
        };
        let sender = relay(from as u128);
        let node = &mut self.nodes[to];
        match news {
            News::Came(claim) => {
                node.elsewhere.came(sender, PROVIDER, claim);
                if let Some(own) = node.own.filter(|own| !node.elsewhere.holds(PROVIDER, *own)) {
                    node.own = None;
                    self.tell(to, News::Left(own));
                }
            }
            News::Left(claim) => node.elsewhere.left(sender, PROVIDER, claim),
            News::Whole => node.elsewhere.whole(sender),
        }
        true
    }
}

#[test]
fn however_links_break_and_messages_linger_one_relay_has_the_provider_once_all_is_healed() {
    for seed in 0..1_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut network = Network::new(4);
        let (mut epoch, mut dial) = (1, 0);
        let pairs: Vec<(usize, usize)> =
            (0..4).flat_map(|one| (0..one).map(move |other| (one, other))).collect();
        for &(one, other) in &pairs {
            network.connect(one, other);
        }
        let mut last = None;
        for _ in 0..random.usize(5..80) {
            network.now += random.u64(0..20);
            let (one, other) = pairs[random.usize(..pairs.len())];
            match random.u8(..10) {
                0..=2 => {
                    if random.u8(..4) == 0 {
                        (epoch, dial) = (epoch + 1, 0);
                    }
                    // Every other seed is of a client that does not number its connections.
                    dial += seed % 2;
                    let to = random.usize(..4);
                    network.come(to, epoch, dial);
                    last = Some((to, epoch, dial));
                }
                3 => network.cut(one, other),
                4 => network.connect(one, other),
                _ => {
                    network.deliver(one, other);
                    network.deliver(other, one);
                }
            }
        }
        for &(one, other) in &pairs {
            network.connect(one, other);
        }
        while (0..4).any(|from| (0..4).any(|to| network.deliver(from, to))) {}
        let owners: Vec<_> = (0..4).filter(|&node| network.nodes[node].own.is_some()).collect();
        let Some((to, epoch, dial)) = last else { continue };
        assert_eq!(owners.len(), 1, "seed {seed}: {owners:?}");
        if seed % 2 == 1 {
            let own = network.nodes[owners[0]].own.unwrap();
            assert_eq!((owners[0], own.epoch, own.dial), (to, epoch, dial), "seed {seed}: the last one");
        }
        for (number, node) in network.nodes.iter().enumerate() {
            let found = node.elsewhere.find(PROVIDER).map(|there| there.relay);
            let elsewhere = (number != owners[0]).then(|| relay(owners[0] as u128));
            assert_eq!(found, elsewhere, "seed {seed}: relay {number} knows");
        }
    }
}
