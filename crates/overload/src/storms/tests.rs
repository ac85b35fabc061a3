use super::*;

/// A source does `per_second` for so many seconds; gives what was news, and the time after it.
fn run(
    storms: &mut Storms<&'static str>,
    from_s: u64,
    seconds: u64,
    rates: &[(&'static str, u64)],
) -> Vec<StormReport<&'static str>> {
    let mut news = Vec::new();
    for second in from_s..from_s + seconds {
        for &(source, per_second) in rates {
            for event in 0..per_second {
                let now = Moment::from_micros(second * 1_000_000 + event * 1_000_000 / per_second);
                news.extend(storms.note(now, &source));
            }
        }
    }
    news
}

fn at_s(second: u64) -> Moment {
    Moment::from_micros(second * 1_000_000)
}

#[test]
fn a_source_that_grows_fourfold_is_named_and_the_others_are_not() {
    let mut storms = Storms::new();
    assert_eq!(run(&mut storms, 0, 120, &[("web", 30), ("batch", 10)]), [], "nothing grows");
    let news = run(&mut storms, 120, 20, &[("web", 39), ("batch", 100)]);
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0].source, "batch");
    assert!((8_000..11_000).contains(&news[0].usual_rate_milli), "{news:?}");
    assert!((90_000..110_000).contains(&news[0].rate_milli), "{news:?}");
    assert!(news[0].since >= at_s(115) && news[0].since <= at_s(125), "{news:?}");
}

#[test]
fn who_comes_back_all_at_once_is_no_storm() {
    let mut storms = Storms::new();
    run(&mut storms, 0, 1, &[("web", 1_000)]);
    assert_eq!(run(&mut storms, 1, 30, &[("web", 5)]), []);
    assert_eq!(storms.begun(), 0);
}

#[test]
fn few_events_are_no_storm_however_they_grow() {
    let mut storms = Storms::new();
    assert_eq!(run(&mut storms, 0, 60, &[("web", LEAST_RATE_PER_SECOND - 1)]), []);
}

#[test]
fn a_storm_is_over_when_its_rate_falls_and_is_shown_for_a_while() {
    let mut storms = Storms::new();
    run(&mut storms, 0, 60, &[("web", 5)]);
    assert_eq!(run(&mut storms, 60, 30, &[("web", 200)]).len(), 1, "once for each storm");
    assert_eq!(storms.reports()[0].over_at, None);
    run(&mut storms, 90, 20, &[("web", 5)]);
    let report = storms.reports().remove(0);
    assert!(report.over_at.is_some_and(|at| at < at_s(105)), "{report:?}");
    assert_eq!(report.greatest_rate_milli, 200_000);
    storms.look(at_s(110) + SHOWN_AFTER);
    storms.look(at_s(120) + SHOWN_AFTER);
    assert!(storms.reports().is_empty());
    assert_eq!(storms.begun(), 1);
}

#[test]
fn a_storm_that_lasts_becomes_what_is_usual() {
    let mut storms = Storms::new();
    run(&mut storms, 0, 60, &[("web", 5)]);
    assert_eq!(run(&mut storms, 60, LONGEST_STORM.as_secs() + 30, &[("web", 50)]).len(), 1);
    assert!(storms.reports()[0].over_at.is_some());
}

#[test]
fn a_source_that_is_gone_is_forgotten() {
    let mut storms = Storms::new();
    run(&mut storms, 0, 10, &[("web", 5)]);
    for hour in 1..5 {
        storms.look(at_s(hour * 3_600));
    }
    assert!(storms.is_empty());
}

#[test]
fn a_flood_of_names_takes_no_more_memory_and_does_not_hide_the_busiest() {
    let mut storms: Storms<u64> = Storms::new();
    let mut news = Vec::new();
    let mut name = 1;
    for second in 0..30_u64 {
        for event in 0..400_u64 {
            let now = Moment::from_micros(second * 1_000_000 + event * 2_500);
            // Every second event is of one source, the others of as many.
            name += 1;
            let source = if event % 2 == 0 { 0 } else { name };
            news.extend(storms.note(now, &source));
            assert!(storms.len() <= MAX_SOURCES);
        }
    }
    assert_eq!(news.iter().map(|report| report.source).collect::<Vec<_>>(), [0]);
    assert!(news[0].rate_milli <= 200_000, "never told to be more than it is: {news:?}");
}

#[test]
fn usual_is_learnt_over_quiet_times_without_a_timer() {
    let mut storms = Storms::new();
    run(&mut storms, 0, 60, &[("web", 30)]);
    // An hour of silence, then what it was before: that is growth, but not for long enough.
    storms.look(at_s(3_600));
    assert_eq!(run(&mut storms, 3_600, 5, &[("web", 30)]), []);
}
