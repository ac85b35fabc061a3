use super::*;
use tempfile::TempDir;

struct Desk {
    folder: TempDir,
    truth: ConfigTruth,
}

fn text(pool_size: u32, port: u16) -> String {
    format!(
        "[databases]\n* = host=127.0.0.1\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n\
         default_pool_size = {pool_size}\n"
    )
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgbouncer.ini");
        std::fs::write(&path, text(5, 6432)).unwrap();
        let loaded = load(&path).unwrap();
        let truth = ConfigTruth::new(path, loaded.files, Arc::new(loaded.config));
        Self { folder, truth }
    }

    /// As editors do: another file takes its place.
    fn write(&self, text: &str) {
        let (path, new) = (self.folder.path().join("pgbouncer.ini"), self.folder.path().join("new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    fn reload(&self) {
        let loaded = load(&self.truth.path).unwrap();
        self.truth.reloaded(loaded.files, Arc::new(loaded.config));
    }
}

#[test]
fn a_changed_file_is_seen_at_the_next_look_and_a_reload_leaves_what_takes_a_restart() {
    let desk = Desk::new();
    let first = desk.truth.look();
    assert_eq!((first.state(), &first.file_hash), ("same", &first.loaded_hash));
    desk.write(&text(6, 6433));
    let changed = desk.truth.look();
    assert_eq!((changed.state(), changed.count(TruthState::NotReloaded)), ("not_reloaded", 2));
    assert_ne!(changed.file_hash, changed.loaded_hash);
    assert_eq!(changed.live_hash, first.live_hash, "nothing is in force yet");
    desk.reload();
    let reloaded = desk.truth.look();
    assert_eq!((reloaded.state(), reloaded.count(TruthState::PendingRestart)), ("pending_restart", 1));
    assert_eq!((&reloaded.file_hash, &reloaded.loaded_hash), (&changed.file_hash, &changed.file_hash));
    assert_ne!(reloaded.live_hash, first.live_hash);
}

#[test]
fn a_comment_changes_the_file_and_no_setting() {
    let desk = Desk::new();
    desk.write(&format!("; a word\n{}", text(5, 6432)));
    let report = desk.truth.look();
    assert_eq!(report.state(), "same");
    assert_ne!(report.file_hash, report.loaded_hash);
}

#[test]
fn a_file_that_is_broken_or_gone_is_said_to_be_so_and_its_return_is_seen() {
    let desk = Desk::new();
    desk.write("[pgbouncer]\nno_such_setting = 1\n");
    let broken = desk.truth.look();
    assert_eq!(broken.state(), "broken");
    assert!(broken.error.unwrap().contains("no_such_setting"));
    std::fs::remove_file(&desk.truth.path).unwrap();
    assert_eq!(desk.truth.look().state(), "broken");
    desk.write(&text(5, 6432));
    assert_eq!(desk.truth.look().state(), "same");
}

#[test]
fn a_hash_is_what_sha256sum_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    std::fs::write(&file, "abc").unwrap();
    assert_eq!(hash_of(&[file]), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
