use proptest::prelude::*;

use super::*;

const CAP: usize = 10;

/// Pools with clients that ask again as soon as they are served, over connections under a shared cap. Each transaction
/// lasts between 5 and 20 ticks.
struct Crowd {
    rotation: Rotation,
    pools: Vec<CrowdPool>,
    running: Vec<(usize, u64)>,
    seed: u64,
    tick: u64,
}

struct CrowdPool {
    size: usize,
    waiting: usize,
    in_use: usize,
    completed: u32,
}

impl Crowd {
    fn new(pools: &[(usize, usize)]) -> Self {
        let mut crowd =
            Self { rotation: Rotation::new(), pools: Vec::new(), running: Vec::new(), seed: 1, tick: 0 };
        for (size, clients) in pools {
            crowd.join(*size, *clients);
        }
        crowd
    }

    fn join(&mut self, size: usize, clients: usize) {
        self.rotation.register(self.pools.len() as u32);
        self.pools.push(CrowdPool { size, waiting: clients, in_use: 0, completed: 0 });
    }

    fn run(&mut self, ticks: u64) -> Vec<u32> {
        let before: Vec<u32> = self.completed();
        for _ in 0..ticks {
            self.tick += 1;
            let tick = self.tick;
            let pools = &mut self.pools;
            self.running.retain(|(key, ends_at)| {
                let ends = *ends_at <= tick;
                if ends {
                    pools[*key].completed += 1;
                    pools[*key].in_use -= 1;
                    pools[*key].waiting += 1;
                }
                !ends
            });
            self.tell_need();
            while self.running.len() < CAP {
                let Some(key) = self.rotation.take_turn() else { break };
                let pool = &mut self.pools[key as usize];
                pool.waiting -= 1;
                pool.in_use += 1;
                self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                self.running.push((key as usize, tick + 5 + (self.seed >> 33) % 16));
                self.tell_need();
            }
        }
        self.completed().iter().zip(before).map(|(after, before)| after - before).collect()
    }

    fn tell_need(&mut self) {
        for (key, pool) in self.pools.iter().enumerate() {
            self.rotation.set_need(key as u32, pool.waiting > 0 && pool.in_use < pool.size);
        }
    }

    fn completed(&self) -> Vec<u32> {
        self.pools.iter().map(|pool| pool.completed).collect()
    }
}

fn assert_within_a_fifth(counts: &[u32]) {
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(*least > 0 && most * 4 <= least * 5, "{counts:?}");
}

#[test]
fn three_users_with_fifteen_clients_each_under_a_cap_of_ten_get_equal_shares() {
    assert_within_a_fifth(&Crowd::new(&[(20, 15), (20, 15), (20, 15)]).run(5_000));
}

#[test]
fn larger_pools_get_no_more_than_smaller_ones_that_have_need() {
    assert_within_a_fifth(&Crowd::new(&[(100, 15), (10, 15), (5, 15)]).run(5_000));
}

#[test]
fn more_clients_get_a_pool_no_more_turns() {
    assert_within_a_fifth(&Crowd::new(&[(20, 400), (20, 15), (20, 15)]).run(5_000));
}

#[test]
fn what_a_small_pool_cannot_use_is_shared_by_the_others() {
    let counts = Crowd::new(&[(20, 15), (20, 15), (1, 15)]).run(5_000);
    assert_within_a_fifth(&counts[..2]);
    let one_slot = 5_000.0 / 12.5;
    assert!(f64::from(counts[2]) > 0.75 * one_slot, "{counts:?}");
    assert!(f64::from(counts[0] + counts[1]) > 0.9 * 9.0 * one_slot, "{counts:?}");
}

#[test]
fn a_pool_that_comes_later_gets_its_share_and_not_more() {
    let mut crowd = Crowd::new(&[(20, 15), (20, 15)]);
    crowd.run(5_000);
    crowd.join(20, 15);
    assert_within_a_fifth(&crowd.run(5_000));
}

#[test]
fn more_pools_than_connections_all_get_served() {
    assert_within_a_fifth(&Crowd::new(&[(5, 3); 35]).run(20_000));
}

#[test]
fn pools_that_come_and_go_do_not_push_the_others_back() {
    let mut rotation = Rotation::new();
    rotation.register(0);
    rotation.set_need(0, true);
    let mut turns = 0;
    for _ in 0..100 {
        rotation.forget(1);
        rotation.register(1);
        rotation.set_need(1, true);
        turns += u32::from(rotation.take_turn() == Some(0));
    }
    assert_eq!(turns, 100, "a newcomer stands behind those who were there");
}

#[test]
fn a_pool_whose_need_comes_and_goes_keeps_its_place() {
    let mut rotation = Rotation::new();
    for key in 0..3 {
        rotation.register(key);
        rotation.set_need(key, true);
    }
    assert_eq!(rotation.take_turn(), Some(0));
    rotation.set_need(1, false);
    rotation.set_need(1, true);
    rotation.register(1);
    assert_eq!(rotation.needy().collect::<Vec<_>>(), [1, 2, 0]);
}

#[test]
fn a_long_time_without_need_is_worth_one_turn_only() {
    let mut rotation = Rotation::new();
    for key in 0..2 {
        rotation.register(key);
    }
    rotation.set_need(1, true);
    for _ in 0..1_000 {
        assert_eq!(rotation.take_turn(), Some(1));
    }
    rotation.set_need(0, true);
    let turns: Vec<_> = (0..4).filter_map(|_| rotation.take_turn()).collect();
    assert_eq!(turns, [0, 1, 0, 1]);
}

#[test]
fn a_pool_without_need_or_without_registration_has_no_turn() {
    let mut rotation = Rotation::new();
    rotation.set_need(7, true);
    rotation.served(7);
    rotation.forget(7);
    assert_eq!(rotation.take_turn(), None);
    rotation.register(7);
    assert_eq!(rotation.take_turn(), None);
    rotation.set_need(7, true);
    assert_eq!(rotation.next(), Some(7));
    rotation.forget(7);
    assert_eq!(rotation.next(), None);
}

#[test]
fn a_large_key_costs_no_more_than_a_small_one() {
    let mut rotation = Rotation::new();
    rotation.register(u32::MAX);
    rotation.set_need(u32::MAX, true);
    assert_eq!(rotation.take_turn(), Some(u32::MAX));
}

proptest! {
    #[test]
    fn a_pool_with_need_waits_for_at_most_one_turn_of_each_other(
        pools in 2_u32..12,
        steps in prop::collection::vec((0_u32..12, any::<bool>()), 0..200),
    ) {
        let mut rotation = Rotation::new();
        for key in 0..pools {
            rotation.register(key);
        }
        rotation.set_need(0, true);
        let mut others_since = vec![0_u32; pools as usize];
        for (key, needs) in steps {
            if key != 0 {
                rotation.set_need(key, needs);
            }
            let served = rotation.take_turn().unwrap();
            if served == 0 {
                others_since.fill(0);
            } else {
                others_since[served as usize] += 1;
                prop_assert!(others_since[served as usize] <= 1);
            }
        }
    }
}
