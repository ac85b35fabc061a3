use super::lately::HALF;
use super::*;

const NO_JITTER: u64 = 0;
const FULL: Cause = Cause::TooManyConnections { scope: Scope::Server };

fn ms(millis: u64) -> Moment {
    Moment::from_micros(millis * 1_000)
}

fn pacer(concurrency: u32, rate_per_second: u32) -> LoginPacer {
    LoginPacer::new(LoginLimits { concurrency, rate_per_second })
}

/// One login from `started` to `ended`.
fn login(pacer: &mut LoginPacer, started: Moment, ended: Moment) {
    pacer.started(started, 1);
    pacer.finished(ended, started);
}

/// One probe at a time until the pacer opens again; the moment when it has.
fn probe_until_well(pacer: &mut LoginPacer, mut now: Moment) -> Moment {
    while pacer.cause().is_some() {
        now = pacer.next_start_at(now).expect("a rest ends by itself");
        assert_eq!(pacer.may_start(now, 40), 1);
        pacer.started(now, 1);
        let answered_at = now + Duration::from_millis(5);
        pacer.finished(answered_at, now);
        now = answered_at;
    }
    now
}

#[test]
fn forty_waiters_with_a_login_of_two_seconds_are_served_in_about_one_login() {
    let mut pacer = LoginPacer::new(LoginLimits::default());
    let mut waiting = 40;
    let mut under_way = Vec::new();
    let mut now = ms(0);
    while waiting > 0 || !under_way.is_empty() {
        let count = pacer.may_start(now, waiting);
        pacer.started(now, count);
        waiting -= count;
        under_way.extend(std::iter::repeat_n(now, count));
        now = now + Duration::from_millis(10);
        under_way.retain(|started_at| {
            let ends = now.since(*started_at) >= Duration::from_secs(2);
            if ends {
                pacer.finished(now, *started_at);
            }
            !ends
        });
    }
    assert!(now <= ms(2_500), "{now:?}");
}

#[test]
fn no_more_logins_are_under_way_than_the_window() {
    let mut pacer = pacer(8, 0);
    assert_eq!(pacer.may_start(ms(0), 5), 5);
    pacer.started(ms(0), 5);
    assert_eq!(pacer.may_start(ms(1), 100), 3);
    pacer.started(ms(1), 3);
    assert_eq!(pacer.may_start(ms(2), 100), 0);
    assert_eq!(pacer.next_start_at(ms(2)), None, "only the end of a login helps");
    pacer.finished(ms(3), ms(0));
    assert_eq!(pacer.may_start(ms(3), 100), 1);
    assert_eq!(pacer.next_start_at(ms(3)), Some(ms(3)));
    assert_eq!(pacer.in_flight(), 7);
}

#[test]
fn logins_per_second_stay_under_the_rate() {
    let mut pacer = pacer(10, 20);
    let mut started = 0;
    for millis in 0..5_000 {
        let count = pacer.may_start(ms(millis), 100);
        pacer.started(ms(millis), count);
        started += count;
        for _ in 0..count {
            pacer.finished(ms(millis), ms(millis));
        }
    }
    assert!((105..=110).contains(&started), "{started}: a burst of 10 and 5 seconds of 20");
}

#[test]
fn a_spent_burst_says_when_the_next_login_may_start() {
    let mut pacer = pacer(2, 10);
    login(&mut pacer, ms(0), ms(1));
    login(&mut pacer, ms(0), ms(1));
    assert_eq!(pacer.may_start(ms(1), 1), 0);
    assert_eq!(pacer.next_start_at(ms(1)), Some(ms(100)));
    assert_eq!(pacer.may_start(ms(99), 1), 0);
    assert_eq!(pacer.may_start(ms(100), 2), 1);
}

#[test]
fn slow_logins_halve_the_window_down_to_the_floor_and_normal_ones_open_it_again() {
    let mut pacer = pacer(64, 0);
    login(&mut pacer, ms(0), ms(50));
    let mut windows = Vec::new();
    for round in 1..=6 {
        login(&mut pacer, ms(round * 1_000), ms(round * 1_000 + 900));
        windows.push(pacer.window());
    }
    assert_eq!(windows, [32, 16, 8, WINDOW_FLOOR, WINDOW_FLOOR, WINDOW_FLOOR]);
    login(&mut pacer, ms(8_000), ms(8_050));
    assert_eq!(pacer.window(), WINDOW_FLOOR + 1);
    for _ in 0..100 {
        login(&mut pacer, ms(8_000), ms(8_050));
    }
    assert_eq!(pacer.window(), 64);
}

#[test]
fn a_wave_of_slow_logins_halves_the_window_once() {
    let mut pacer = pacer(64, 0);
    login(&mut pacer, ms(0), ms(50));
    pacer.started(ms(100), 64);
    for millis in 0..64 {
        pacer.finished(ms(1_000 + millis), ms(100));
    }
    assert_eq!(pacer.window(), 32);
}

#[test]
fn slow_begins_beyond_four_times_the_fastest_lately() {
    let micro = Duration::from_micros(1);
    let fastest = Duration::from_millis(100);
    let mut pacer = pacer(64, 0);
    login(&mut pacer, ms(0), ms(0) + fastest);
    login(&mut pacer, ms(1_000), ms(1_000) + fastest * SLOW_FACTOR);
    assert_eq!(pacer.window(), 64);
    login(&mut pacer, ms(2_000), ms(2_000) + fastest * SLOW_FACTOR + micro);
    assert_eq!(pacer.window(), 32);
}

#[test]
fn a_login_within_a_quarter_second_is_never_slow() {
    let mut pacer = pacer(64, 0);
    login(&mut pacer, ms(0), ms(1));
    login(&mut pacer, ms(1_000), ms(1_000) + SLOW_FLOOR);
    assert_eq!(pacer.window(), 64);
    login(&mut pacer, ms(2_000), ms(2_000) + SLOW_FLOOR + Duration::from_micros(1));
    assert_eq!(pacer.window(), 32);
}

#[test]
fn a_server_that_became_slow_for_good_is_measured_by_its_new_speed_after_a_minute() {
    let mut pacer = pacer(64, 0);
    login(&mut pacer, ms(0), ms(50));
    let mut window_after = Vec::new();
    for second in 0..90 {
        login(&mut pacer, ms(second * 1_000), ms(second * 1_000 + 900));
        window_after.push(pacer.window());
    }
    assert_eq!(window_after[28], WINDOW_FLOOR);
    let renewed = usize::try_from((HALF * 2).as_secs()).unwrap();
    assert!(window_after[renewed + 5] > WINDOW_FLOOR, "{window_after:?}");
}

#[test]
fn lately_reaches_back_over_one_half_but_not_over_a_quiet_time() {
    let mut pacer = pacer(64, 0);
    login(&mut pacer, ms(0), ms(50));
    let next_half = ms(0) + HALF;
    login(&mut pacer, next_half, next_half + Duration::from_millis(900));
    assert_eq!(pacer.window(), 32);
    let after_a_quiet_time = next_half + HALF * 3;
    login(&mut pacer, after_a_quiet_time, after_a_quiet_time + Duration::from_millis(4_000));
    assert_eq!(pacer.window(), 33, "the first of a new time is its own measure");
}

#[test]
fn the_window_is_never_below_one_nor_above_the_concurrency() {
    for concurrency in [0, 1, 2, 3] {
        let mut pacer = pacer(concurrency, 0);
        login(&mut pacer, ms(0), ms(1));
        for round in 1..5 {
            login(&mut pacer, ms(round * 1_000), ms(round * 1_000 + 900));
        }
        assert_eq!(pacer.window(), concurrency.max(1));
        assert_eq!(pacer.may_start(ms(9_000), 100), concurrency.max(1) as usize);
    }
}

#[test]
fn after_a_failure_one_probe_at_a_time_and_after_its_success_ever_more() {
    let mut pacer = pacer(64, 0);
    pacer.started(ms(0), 40);
    for _ in 0..40 {
        pacer.failed(ms(10), ms(0), Cause::Refused, NO_JITTER);
    }
    assert_eq!(pacer.cause(), Some(Cause::Refused));
    assert_eq!(pacer.may_start(ms(59), 40), 0);
    assert_eq!(pacer.next_start_at(ms(10)), Some(ms(60)));
    assert_eq!(pacer.may_start(ms(60), 40), 1);
    pacer.started(ms(60), 1);
    assert_eq!(pacer.may_start(ms(61), 40), 0);
    pacer.failed(ms(62), ms(60), Cause::Refused, NO_JITTER);
    assert_eq!(pacer.next_start_at(ms(62)), Some(ms(162)));
    pacer.started(ms(162), 1);
    pacer.finished(ms(170), ms(162));
    assert_eq!(pacer.cause(), None);
    // The probe was one of them.
    let mut now = 170;
    for expected in [5, 10, 20, 40, 64, 64] {
        assert_eq!(pacer.may_start(ms(now), 100), expected);
        pacer.started(ms(now), expected);
        for _ in 0..expected {
            pacer.finished(ms(now + 8), ms(now));
        }
        now += 8;
    }
}

#[test]
fn a_wrong_password_of_one_pool_does_not_hold_up_the_others() {
    let mut pacer = pacer(8, 0);
    for cause in Cause::ALL.into_iter().filter(|cause| !cause.concerns_whole_server()) {
        pacer.started(ms(0), 1);
        pacer.failed(ms(5), ms(0), cause, NO_JITTER);
        assert_eq!(pacer.may_start(ms(5), 8), 8, "{cause:?}");
        assert_eq!(pacer.in_flight(), 0);
    }
}

#[test]
fn a_probe_that_is_told_of_a_wrong_password_shows_that_the_server_is_back() {
    let mut pacer = pacer(8, 0);
    pacer.started(ms(0), 1);
    pacer.failed(ms(5), ms(0), Cause::StartingUp, NO_JITTER);
    pacer.started(ms(55), 1);
    pacer.failed(ms(60), ms(55), Cause::WrongPassword, NO_JITTER);
    assert_eq!(pacer.cause(), None);
    assert_eq!(pacer.may_start(ms(60), 8), 4);
}

#[test]
fn logins_that_hang_on_a_dead_server_do_not_hold_up_the_one_that_came_back() {
    let mut pacer = pacer(8, 0);
    pacer.started(ms(0), 8);
    pacer.failed(ms(10), ms(0), Cause::Crashed, NO_JITTER);
    let now = probe_until_well(&mut pacer, ms(10));
    assert!(now < ms(200), "{now:?}");
    assert_eq!(pacer.in_flight(), 7, "they still hang");
    assert_eq!(pacer.may_start(now, 40), 5);
    pacer.started(now, 5);
    for _ in 0..7 {
        pacer.failed(ms(15_000), ms(0), Cause::TimedOut, NO_JITTER);
    }
    assert_eq!(pacer.cause(), None, "their time-out says nothing about now");
    assert_eq!((pacer.in_flight(), pacer.may_start(ms(15_000), 40)), (5, 0), "nor does it make room");
}

#[test]
fn hanging_logins_and_new_ones_stay_within_twice_the_concurrency() {
    let mut pacer = pacer(4, 0);
    pacer.started(ms(0), 4);
    pacer.failed(ms(10), ms(0), Cause::Crashed, NO_JITTER);
    let now = probe_until_well(&mut pacer, ms(10));
    assert_eq!(pacer.may_start(now, 100), 4);
    pacer.started(now, 4);
    pacer.failed(ms(1_000), now, Cause::Crashed, NO_JITTER);
    let now = probe_until_well(&mut pacer, ms(1_000));
    assert_eq!(pacer.in_flight(), 6);
    assert_eq!(pacer.may_start(now, 100), 2);
    pacer.started(now, 2);
    assert_eq!((pacer.may_start(now, 100), pacer.next_start_at(now)), (0, None));
}

#[test]
fn probes_stay_within_twice_the_concurrency_too() {
    let mut pacer = pacer(2, 0);
    pacer.started(ms(0), 2);
    pacer.failed(ms(10), ms(0), Cause::TimedOut, NO_JITTER);
    let mut probes = 0;
    let mut now = ms(10);
    while let Some(next) = pacer.next_start_at(now) {
        now = next;
        assert_eq!(pacer.may_start(now, 100), 1);
        pacer.started(now, 1);
        probes += 1;
    }
    assert_eq!((probes, pacer.in_flight()), (3, 4));
    assert_eq!(pacer.may_start(now + Duration::from_secs(60), 100), 0);
}

#[test]
fn a_server_that_is_full_gets_a_smaller_window() {
    let mut pacer = pacer(64, 0);
    pacer.started(ms(0), 64);
    for _ in 0..64 {
        pacer.failed(ms(10), ms(0), FULL, NO_JITTER);
    }
    assert_eq!(pacer.window(), 32);
    assert_eq!(pacer.next_start_at(ms(10)), Some(ms(10) + FULL.first_wait()));
}

#[test]
fn old_news_of_a_full_server_does_not_close_the_window() {
    let mut pacer = pacer(64, 0);
    pacer.started(ms(0), 2);
    pacer.failed(ms(10), ms(0), Cause::Refused, NO_JITTER);
    let now = probe_until_well(&mut pacer, ms(10));
    let window = pacer.window();
    pacer.failed(now, ms(0), FULL, NO_JITTER);
    assert_eq!((pacer.window(), pacer.cause()), (window, None));
}

#[test]
fn a_login_that_nobody_needs_any_more_gives_its_place_back_without_a_judgement() {
    let mut pacer = pacer(2, 0);
    pacer.started(ms(0), 2);
    pacer.abandoned(ms(1), ms(0));
    assert_eq!(pacer.may_start(ms(1), 5), 1);
    pacer.failed(ms(2), ms(0), Cause::Refused, NO_JITTER);
    pacer.started(ms(52), 1);
    pacer.abandoned(ms(53), ms(52));
    assert_eq!(pacer.may_start(ms(53), 5), 1, "the next probe");
}

#[test]
fn new_limits_take_effect_at_once() {
    let mut pacer = pacer(8, 0);
    pacer.started(ms(0), 8);
    pacer.set_limits(ms(1), LoginLimits { concurrency: 20, rate_per_second: 0 });
    assert_eq!(pacer.may_start(ms(1), 100), 12, "the window was open and opens further");
    pacer.set_limits(ms(1), LoginLimits { concurrency: 2, rate_per_second: 10 });
    assert_eq!(pacer.may_start(ms(1), 100), 0);
    for _ in 0..8 {
        pacer.finished(ms(2), ms(0));
    }
    assert_eq!(pacer.window(), 2);
    login(&mut pacer, ms(2), ms(3));
    login(&mut pacer, ms(2), ms(3));
    assert_eq!(pacer.next_start_at(ms(3)), Some(ms(102)), "ten a second, and the burst was spent at 2 ms");
}

#[test]
fn a_window_that_slow_logins_have_closed_stays_so_when_limits_change() {
    let mut pacer = pacer(64, 0);
    login(&mut pacer, ms(0), ms(50));
    login(&mut pacer, ms(1_000), ms(1_900));
    pacer.set_limits(ms(2_000), LoginLimits { concurrency: 100, rate_per_second: 0 });
    assert_eq!(pacer.window(), 32);
}

#[test]
fn a_mistaken_moment_does_not_make_the_count_drift() {
    let mut pacer = pacer(4, 0);
    pacer.started(ms(0), 4);
    pacer.failed(ms(1), ms(0), Cause::Crashed, NO_JITTER);
    let now = probe_until_well(&mut pacer, ms(1));
    pacer.started(now, 1);
    for _ in 0..4 {
        pacer.finished(now, now);
    }
    assert_eq!(pacer.in_flight(), 0);
    pacer.finished(now, now);
    assert_eq!(pacer.in_flight(), 0);
}

#[test]
fn nothing_is_started_for_nobody() {
    let mut pacer = pacer(4, 0);
    pacer.failed(ms(1), ms(0), Cause::Refused, NO_JITTER);
    pacer.started(ms(51), 0);
    assert_eq!(pacer.may_start(ms(51), 1), 1, "no probe was sent");
    assert_eq!(pacer.may_start(ms(51), 0), 0);
}
