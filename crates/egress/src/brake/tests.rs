use super::*;

const USER: u32 = 7;

fn at(seconds: u64) -> Moment {
    Moment::from_micros(seconds * 1_000_000)
}

fn scan(brake: &mut Brake<u32>, user: u32, hosts: u64, now: Moment) -> Option<Verdict> {
    (0..hosts)
        .map(|host| brake.attempted(now, user, 22, host, true))
        .find(|verdict| *verdict != Verdict::Fine)
}

#[test]
fn who_tries_thirty_one_hosts_in_vain_has_to_stop_for_ten_minutes() {
    let mut brake = Brake::default();
    assert_eq!(scan(&mut brake, USER, 30, at(1)), None);
    assert_eq!(brake.attempted(at(1), USER, 22, 30, true), Verdict::Stop { hosts: 31, failed: 31 });
    assert_eq!(brake.rests_until(at(2), USER), Some(at(601)));
    assert_eq!((brake.resting(at(600)), brake.resting(at(601))), (1, 0));
    assert_eq!(brake.rests_until(at(601), USER), None);
    assert_eq!(brake.rests_until(at(2), USER + 1), None, "others go on");
    assert_eq!(scan(&mut brake, USER, 30, at(602)), None, "what came before is forgiven");
}

#[test]
fn many_hosts_with_success_and_one_host_in_vain_are_fine() {
    let mut brake = Brake::default();
    for host in 0..1_000 {
        assert_eq!(brake.attempted(at(1), USER, 443, host, host % 2 == 1), Verdict::Fine);
        assert_eq!(brake.attempted(at(1), USER, 8080, 1, true), Verdict::Fine);
    }
    for port in 1..1_000 {
        assert_eq!(brake.attempted(at(1), USER + 1, port, 1, true), Verdict::Fine);
    }
}

#[test]
fn attempts_are_forgotten_after_a_minute() {
    let mut brake = Brake::default();
    for host in 0..200 {
        assert_eq!(
            brake.attempted(at(host * 2), USER, 22, host, true),
            Verdict::Fine,
            "30 a minute is not too many"
        );
    }
}

#[test]
fn memory_has_a_bound_whatever_is_tried() {
    let mut brake = Brake::default();
    for user in 0..5_000 {
        brake.attempted(at(1), user, 22, 1, true);
        scan(&mut brake, user, 31, at(1));
    }
    for user in 20_000..25_000 {
        brake.attempted(at(1), user, 22, 1, true);
    }
    for host in 0..10_000 {
        brake.attempted(at(1), USER, 80, host, false);
    }
    assert!(brake.watched.len() <= WATCHED_MAX);
    assert!(brake.resting.len() <= RESTING_MAX);
    assert!(brake.watched.values().all(|attempts| attempts.lately.len() <= ATTEMPTS_MAX));
}
