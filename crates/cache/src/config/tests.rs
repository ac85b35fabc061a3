//! What is refused, and that no error or log line shows a password.

use super::*;

const NETWORK: NetworkId = NetworkId([3; 32]);

fn parse(text: &str) -> CacheConfig {
    toml::from_str(text).unwrap()
}

#[tokio::test]
async fn without_an_address_it_is_in_process() {
    let cache = parse("").open(NETWORK).unwrap();
    assert!(format!("{cache:?}").contains("in process"));
}

#[tokio::test]
async fn roles_in_one_process_share_its_cache_and_networks_do_not() {
    let network = NetworkId([4; 32]);
    let (one, two) = (parse("").open(network).unwrap(), parse("").open(network).unwrap());
    let other = parse("").open(NetworkId([5; 32])).unwrap();
    let key = crate::Key::new("test", "a");
    one.put(&key, b"x", Duration::from_secs(60)).await.unwrap();
    assert!(two.get(&key).await.unwrap().is_some());
    assert!(other.get(&key).await.unwrap().is_none());
}

#[tokio::test]
async fn mistakes_are_named_without_the_password() {
    for (text, part) in [
        ("url = 'http://u:hunter2@h:1'", "cache.url"),
        ("url = 'redis://u:hunter2@:99999999/'", "cache.url"),
        ("url = 'redis://u:hunter2@h:1/3'\ncluster = true", "cache.url"),
        ("url = 'redis://u:hunter2@h:1'\nnodes = ['h:2']", "cache.url"),
        ("url = 'redis://u:hunter2@h:1'\ncluster = true\nnodes = ['h']", "cache.nodes"),
        ("url = 'rediss://u:hunter2@h:1'", "cache.ca"),
        ("url = 'redis://u:hunter2@h:1'\nca = 'x'", "cache.ca"),
        ("url = 'rediss://u:hunter2@h:1'\nca = '/nowhere'", "cache.ca"),
        ("url = 'redis://u:hunter2@h:1'\ndeadline_ms = 0", "cache.deadline_ms"),
        ("cluster = true", "cache.url"),
        ("in_flight = 0", "cache.in_flight"),
    ] {
        let config = parse(text);
        let error = config.open(NETWORK).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("hunter2"), "{text}: {error}");
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}

#[test]
fn an_unknown_setting_is_refused() {
    assert!(toml::from_str::<CacheConfig>("urll = 'x'").is_err());
}
