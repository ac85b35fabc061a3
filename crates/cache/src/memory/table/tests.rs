//! The table against a plain model, in virtual time, and at its bounds.

use super::*;

const ROOMY: MemoryLimits = MemoryLimits { entries: 1_000, bytes: 1 << 20 };

fn at(ms: u64) -> Moment {
    Moment::from_micros(ms * 1_000)
}

fn keep(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn sound(table: &Table) {
    assert!(table.entries.len() <= table.limits.entries && table.bytes <= table.limits.bytes);
    assert_eq!(table.entries.len(), table.values.len() + table.held.len());
    let bytes: usize = table.entries.iter().map(|(name, entry)| cost(name, &entry.what)).sum();
    assert_eq!(table.bytes, bytes);
}

#[test]
fn a_value_is_there_until_it_expires_and_not_a_moment_longer() {
    let mut table = Table::new(ROOMY, 0);
    table.put("a", b"1", keep(10), at(0)).unwrap();
    assert_eq!(table.get("a", at(9)), Some(&b"1"[..]));
    assert_eq!(table.get("a", at(10)), None);
}

#[test]
fn at_the_bound_of_entries_the_value_that_expires_first_goes() {
    let mut table = Table::new(MemoryLimits { entries: 3, ..ROOMY }, 0);
    for (name, ms) in [("late", 300), ("early", 100), ("middle", 200), ("new", 50)] {
        table.put(name, b"x", keep(ms), at(0)).unwrap();
        sound(&table);
    }
    let found = ["late", "early", "middle", "new"].map(|name| table.get(name, at(1)).is_some());
    assert_eq!(found, [true, false, true, true]);
}

#[test]
fn at_the_bound_of_bytes_values_go_until_the_new_one_fits() {
    let bytes = 4 * (ENTRY_BYTES + 1 + 100);
    let mut table = Table::new(MemoryLimits { bytes, ..ROOMY }, 0);
    for (index, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        table.put(name, &[0; 100], keep(100 + index as u64), at(0)).unwrap();
    }
    assert_eq!(table.entries.len(), 4);
    table.put("e", &[0; 250], keep(500), at(0)).unwrap();
    sound(&table);
    assert!(table.get("a", at(1)).is_none() && table.get("b", at(1)).is_none());
    assert!(table.get("c", at(1)).is_some() && table.get("e", at(1)).is_some());
    assert_eq!(table.put("f", &vec![0; bytes], keep(500), at(0)), Err(CacheError::Full));
    sound(&table);
}

#[test]
fn a_full_table_of_leases_and_counters_refuses_instead_of_forgetting_one() {
    let mut table = Table::new(MemoryLimits { entries: 2, ..ROOMY }, 0);
    assert_eq!(table.take("lease", "me", keep(100), at(0)).unwrap(), Ok(1));
    table.count("counter", 1, keep(50), at(0)).unwrap();
    assert_eq!(table.put("value", b"x", keep(10), at(1)), Err(CacheError::Full));
    assert_eq!(table.take("other", "me", keep(10), at(1)), Err(CacheError::Full));
    // The expired counter makes room.
    assert_eq!(table.put("value", b"x", keep(10), at(50)), Ok(()));
    assert_eq!(table.take("lease", "you", keep(10), at(51)).unwrap(), Err(49));
}

#[test]
fn a_late_holder_cannot_renew_and_its_number_is_lower_than_the_next() {
    let mut table = Table::new(ROOMY, 7);
    let Ok(first) = table.take("l", "a", keep(10), at(0)).unwrap() else { panic!() };
    assert_eq!(table.take("l", "a", keep(10), at(5)).unwrap(), Ok(first), "again, after a lost answer");
    assert_eq!(table.take("l", "b", keep(10), at(14)).unwrap(), Err(1));
    let Ok(second) = table.take("l", "b", keep(10), at(15)).unwrap() else { panic!() };
    assert!(second > first);
    assert!(!table.renew("l", "a", first, keep(10), at(16)));
    assert!(!table.give_back("l", "a", first, at(16)));
    assert!(table.renew("l", "b", second, keep(10), at(16)));
    assert!(table.give_back("l", "b", second, at(17)));
    assert!(table.take("l", "a", keep(10), at(17)).unwrap().unwrap() > second);
}

#[test]
fn a_window_is_not_extended_by_counting() {
    let mut table = Table::new(ROOMY, 0);
    for ms in 0..10 {
        let count = table.count("c", 2, keep(10), at(ms)).unwrap();
        assert_eq!(count, Count { total: 2 * (ms + 1), ends_in_ms: 10 - ms });
    }
    assert_eq!(table.count("c", 1, keep(10), at(10)).unwrap().total, 1);
}

/// What is true without any bound.
#[derive(Default)]
struct Model {
    values: HashMap<u8, (Vec<u8>, u64)>,
    leases: HashMap<u8, (u8, u64, u64)>,
    counts: HashMap<u8, (u64, u64)>,
    greatest_fence: u64,
}

#[test]
fn seeded_runs_agree_with_the_model() {
    for seed in 0..40 {
        run(seed, ROOMY, true);
        // Small: values may be missing, but never wrong; leases and counters are never forgotten.
        run(seed, MemoryLimits { entries: 12, bytes: 12 * (ENTRY_BYTES + 40) }, false);
    }
}

fn run(seed: u64, limits: MemoryLimits, exact: bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut table = Table::new(limits, 0);
    let mut model = Model::default();
    let mut now = 0;
    for step in 0..2_000 {
        now += random.u64(0..4);
        let (name, ms) = (random.u8(0..10), random.u64(1..60));
        let place = format!("seed {seed}, step {step}");
        let moment = at(now);
        match random.u8(0..6) {
            0 => {
                let value = vec![random.u8(..); random.usize(0..60)];
                if table.put(&format!("v{name}"), &value, keep(ms), moment).is_ok() {
                    model.values.insert(name, (value, now + ms));
                } else {
                    assert!(!exact, "{place}");
                    model.values.remove(&name);
                }
            }
            1 => {
                let expected =
                    model.values.get(&name).filter(|(_, until)| *until > now).map(|(value, _)| &value[..]);
                let found = table.get(&format!("v{name}"), moment);
                assert!(found == expected || (!exact && found.is_none()), "{place}");
            }
            2 => {
                let holder = random.u8(0..3);
                let held = model.leases.get(&name).filter(|lease| lease.2 > now).copied();
                match (table.take(&format!("l{name}"), &holder.to_string(), keep(ms), moment), held) {
                    (Ok(Err(for_ms)), Some((has, _, until))) => {
                        assert!(has != holder && for_ms == until - now, "{place}");
                    }
                    (Ok(Ok(fence)), Some((has, number, _))) => {
                        assert!(has == holder && fence == number, "{place}");
                        model.leases.insert(name, (holder, fence, now + ms));
                    }
                    (Ok(Ok(fence)), None) => {
                        assert!(fence > model.greatest_fence, "{place}");
                        model.greatest_fence = fence;
                        model.leases.insert(name, (holder, fence, now + ms));
                    }
                    (Err(CacheError::Full), None) if !exact => {}
                    other => panic!("{place}: {other:?}"),
                }
            }
            3 => {
                let Some((holder, fence, until)) = model.leases.get(&name).copied() else { continue };
                let renewed = table.renew(&format!("l{name}"), &holder.to_string(), fence, keep(ms), moment);
                assert_eq!(renewed, until > now, "{place}");
                if renewed {
                    model.leases.insert(name, (holder, fence, now + ms));
                }
            }
            4 => {
                let Some((holder, fence, until)) = model.leases.remove(&name) else { continue };
                let given = table.give_back(&format!("l{name}"), &holder.to_string(), fence, moment);
                assert_eq!(given, until > now, "{place}");
            }
            _ => {
                let before = model.counts.get(&name).filter(|(_, until)| *until > now).copied();
                match table.count(&format!("c{name}"), 3, keep(ms), moment) {
                    Ok(count) => {
                        let (total, until) = before.unwrap_or((0, now + ms));
                        assert_eq!(count, Count { total: total + 3, ends_in_ms: until - now }, "{place}");
                        model.counts.insert(name, (total + 3, until));
                    }
                    Err(_) => assert!(!exact && before.is_none(), "{place}"),
                }
            }
        }
        sound(&table);
    }
}
