use super::*;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tracing::subscriber::DefaultGuard;

/// Collects what is written.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }
}

fn logged(format: LogFormat, verbose: u8, work: impl FnOnce()) -> Vec<String> {
    let (page, _default) = start(format, verbose);
    work();
    page.lines()
}

/// Logs to a page, on this thread, until the guard is dropped.
fn start(format: LogFormat, verbose: u8) -> (Page, DefaultGuard) {
    let page = Page::default();
    let writer = page.clone();
    let layer = lines(format, BoxMakeWriter::new(move || writer.clone()), false);
    let subscriber = Registry::default().with(layer.with_filter(targets(verbose)));
    (page, tracing::subscriber::set_default(subscriber))
}

#[test]
fn a_line_has_a_time_a_level_and_its_fields() {
    let lines = logged(
        LogFormat::Text,
        0,
        || tracing::info!(target: "pooling", database = "app", "closing because: evicted"),
    );
    let (time, rest) = lines[0].split_once(' ').unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    assert!(
        rest.contains("INFO") && rest.contains("closing because: evicted") && rest.contains("app"),
        "{rest}"
    );
}

#[tokio::test(start_paused = true)]
async fn json_lines_are_objects_even_where_lines_were_held_back() {
    let (page, _default) = start(LogFormat::Json, 0);
    for _ in 0..2 {
        for number in 0..=BURST_LINES {
            tracing::warn!(target: "pooler", number, "again and \"again\"");
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let values: Vec<serde_json::Value> =
        page.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(values[0]["message"], "again and \"again\"");
    let held_back = values.iter().find(|value| value["suppressed"].is_u64()).unwrap();
    assert_eq!(held_back["suppressed"], 1);
    assert_eq!((&held_back["level"], &held_back["target"]), (&"WARN".into(), &"pooler".into()));
}

#[tokio::test(start_paused = true)]
async fn one_place_that_floods_is_held_back_and_others_are_not() {
    let (page, _default) = start(LogFormat::Text, 0);
    for second in 0..4 {
        for _ in 0..1_000 {
            tracing::warn!(target: "pooler", second, "flood");
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    tracing::warn!(target: "pooler", "something else");
    let lines = page.lines();
    let flood = lines.iter().filter(|line| line.contains("flood")).count();
    assert_eq!(flood, (BURST_LINES + 3 * LINES_PER_SECOND) as usize);
    assert!(lines.last().is_some_and(|line| line.contains("something else")));
}

#[tokio::test(start_paused = true)]
async fn the_first_line_after_a_flood_says_how_many_were_held_back() {
    let (page, _default) = start(LogFormat::Text, 0);
    for _ in 0..2 {
        for _ in 0..BURST_LINES + 7 {
            tracing::info!(target: "pooler", "flood");
        }
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    let lines = page.lines();
    let summary = lines.iter().position(|line| line.contains("7 similar lines suppressed"));
    assert_eq!(summary, Some(BURST_LINES as usize), "{lines:#?}");
}

#[test]
fn verbose_shows_more_of_our_own_and_nothing_more_of_others() {
    let work = || {
        tracing::debug!(target: "pooling::engine", "ours");
        tracing::trace!(target: "pooler", "finest");
        tracing::info!(target: "hyper", "theirs");
    };
    assert_eq!(logged(LogFormat::Text, 0, work).len(), 0);
    assert_eq!(logged(LogFormat::Text, 1, work).len(), 1);
    assert_eq!(logged(LogFormat::Text, 2, work).len(), 2);
}

#[test]
fn a_renamed_file_is_opened_anew_only_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pooler.log");
    let file = Arc::new(LogFile::open(&path).unwrap());
    let mut writer = file::Writer::new(Arc::clone(&file));
    writer.write_all(b"one\n").unwrap();
    let rotated = folder.path().join("pooler.log.1");
    std::fs::rename(&path, &rotated).unwrap();
    writer.write_all(b"two\n").unwrap();
    assert_eq!(std::fs::read_to_string(&rotated).unwrap(), "one\ntwo\n");
    file.reopen();
    writer.write_all(b"three\n").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
    assert_eq!(std::fs::read_to_string(&rotated).unwrap(), "one\ntwo\n");
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_with_a_cure() {
    let options =
        LogOptions { format: LogFormat::Text, logfile: Some("/nonexistent/pooler.log".into()), verbose: 0 };
    let error = Logging::start(&options).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/pooler.log") && error.contains("create its folder"), "{error}");
}
