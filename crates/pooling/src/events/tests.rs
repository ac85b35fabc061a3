use super::*;

const FAILED: EventKind = EventKind::LoginFailed { cause: Cause::Refused };

struct Book {
    recorder: Recorder,
    now: Moment,
}

impl Book {
    fn new() -> Self {
        Self { recorder: Recorder::default(), now: Moment::ORIGIN }
    }

    fn note(&mut self, kind: EventKind, database: &str) {
        self.recorder.record(self.now, kind, &database.into(), &"web".into());
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    fn rows(&self) -> Vec<EventRow> {
        self.recorder.rows(self.now)
    }
}

#[test]
fn a_storm_of_two_pools_takes_two_places_and_keeps_what_began_it() {
    let mut book = Book::new();
    book.note(EventKind::ServerClosed { cause: CloseCause::ServerClosed }, "app");
    for _ in 0..5 * MAX_EVENTS {
        book.pass(Duration::from_millis(10));
        book.note(FAILED, "app");
        book.note(FAILED, "other");
    }
    let rows = book.rows();
    let seen: Vec<_> = rows.iter().map(|row| (row.event, row.cause, &*row.database, row.count)).collect();
    let many = 5 * MAX_EVENTS as u64;
    assert_eq!(
        seen,
        [
            ("server_closed", "server_closed", "app", 1),
            ("login_failed", "refused", "app", many),
            ("login_failed", "refused", "other", many),
        ]
    );
    assert_eq!(rows[1].last_ago, Duration::ZERO);
    assert_eq!(rows[0].first_ago, Duration::from_millis(10 * many));
}

#[test]
fn another_cause_is_another_event_and_so_is_the_same_one_after_a_rest() {
    let mut book = Book::new();
    book.note(FAILED, "app");
    book.note(EventKind::LoginFailed { cause: Cause::TimedOut }, "app");
    book.pass(SAME_EVENT_WITHIN);
    book.note(FAILED, "app");
    book.pass(SAME_EVENT_WITHIN + Duration::from_micros(1));
    book.note(FAILED, "app");
    let counts: Vec<_> = book.rows().iter().map(|row| (row.cause, row.count)).collect();
    assert_eq!(counts, [("refused", 2), ("timed_out", 1), ("refused", 1)]);
}

#[test]
fn the_ring_keeps_its_bound_and_forgets_the_oldest_first() {
    let mut book = Book::new();
    for number in 0..MAX_EVENTS + 3 {
        book.note(FAILED, &format!("db{number}"));
    }
    assert_eq!((book.rows().len(), book.recorder.latest.len()), (MAX_EVENTS, MAX_EVENTS));
    assert_eq!(&*book.rows()[0].database, "db3");
    // One that was forgotten begins anew; one that is there is counted where it stands.
    book.note(FAILED, "db0");
    book.note(FAILED, &format!("db{}", MAX_EVENTS - 1));
    let rows = book.rows();
    assert_eq!((rows.len(), rows[MAX_EVENTS - 1].count), (MAX_EVENTS, 1));
    assert_eq!(rows.iter().find(|row| row.count == 2).map(|row| &*row.database), Some("db1023"));
}

#[test]
fn the_last_time_is_what_the_detail_tells() {
    let mut book = Book::new();
    for seconds in [2, 7] {
        book.note(EventKind::ServerBack { after: Duration::from_secs(seconds) }, "app");
    }
    assert_eq!((book.rows()[0].count, &*book.rows()[0].detail), (2, "after 7.0 s without"));
}
