//! The verbs as commands. Each is about one key and costs the same however many others there are.

use std::time::Duration;

use redis::{Cmd, Value, cmd};

use super::Redis;
use crate::CacheError;
use crate::cache::Count;

/// A lease is a hash: holder, until (ms on the server's clock), fence. It outlives its holder by this, so that the next
/// number is greater than the last; beyond that, the server's clock sees to it.
const FENCE_KEEP_MS: u64 = 24 * 60 * 60 * 1_000;

/// KEYS[1] the lease; ARGV holder, ms to keep, ms to keep the number. Gives {1, number} or {0, ms that it is held}.
/// Numbers are written with %.0f: they are beyond what Lua writes without an exponent.
const TAKE: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local has = redis.call('HMGET', KEYS[1], 'holder', 'until', 'fence')
local left = (tonumber(has[2]) or 0) - now
local fence = tonumber(has[3]) or 0
if has[1] and left > 0 then
  if has[1] ~= ARGV[1] then return {0, left} end
else
  fence = math.max(fence + 1, time[1] * 1000000 + time[2])
end
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'until', string.format('%.0f', now + ARGV[2]),
  'fence', string.format('%.0f', fence))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ARGV[2] + ARGV[3]))
return {1, fence}
";

/// KEYS[1] the lease; ARGV holder, number, ms to keep (none to give it back), ms to keep the number. Gives 1 if it was held.
const HOLD: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local has = redis.call('HMGET', KEYS[1], 'holder', 'until', 'fence')
if has[1] ~= ARGV[1] or has[3] ~= ARGV[2] or (tonumber(has[2]) or 0) <= now then return 0 end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], 'holder', 'until')
else
  redis.call('HSET', KEYS[1], 'until', string.format('%.0f', now + ARGV[3]))
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ARGV[3] + ARGV[4]))
end
return 1
";

/// KEYS[1] the counter; ARGV what to add, ms of the window. Gives {total, ms that are left}. In one script, since a counter
/// that expires between two commands would come back without an end.
const COUNT: &str = r"
local total = redis.call('INCRBY', KEYS[1], ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = tonumber(ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {total, left}
";

impl Redis {
    pub(crate) async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, CacheError> {
        match self.call(key, cmd("GET").arg(key)).await? {
            Value::BulkString(value) => Ok(Some(value)),
            Value::Nil => Ok(None),
            _ => Err(CacheError::Unexpected),
        }
    }

    pub(crate) async fn put(&self, key: &str, value: &[u8], keep: Duration) -> Result<(), CacheError> {
        match self.call(key, cmd("SET").arg(key).arg(value).arg("PX").arg(ms(keep))).await? {
            Value::Okay => Ok(()),
            _ => Err(CacheError::Unexpected),
        }
    }

    /// The fencing number, or for how many ms another has it.
    pub(crate) async fn take(
        &self,
        key: &str,
        holder: &str,
        keep: Duration,
    ) -> Result<Result<u64, u64>, CacheError> {
        let command = script(TAKE, key).arg(holder).arg(ms(keep)).arg(FENCE_KEEP_MS).take();
        match pair(&self.call(key, &command).await?)? {
            (1, fence) => Ok(Ok(fence)),
            (0, for_ms) => Ok(Err(for_ms)),
            _ => Err(CacheError::Unexpected),
        }
    }

    pub(crate) async fn renew(
        &self,
        key: &str,
        holder: &str,
        fence: u64,
        keep: Duration,
    ) -> Result<bool, CacheError> {
        let command = script(HOLD, key).arg(holder).arg(fence).arg(ms(keep)).arg(FENCE_KEEP_MS).take();
        self.held(key, &command).await
    }

    pub(crate) async fn give_back(&self, key: &str, holder: &str, fence: u64) -> Result<bool, CacheError> {
        let command = script(HOLD, key).arg(holder).arg(fence).arg("").arg(FENCE_KEEP_MS).take();
        self.held(key, &command).await
    }

    pub(crate) async fn count(&self, key: &str, by: u32, window: Duration) -> Result<Count, CacheError> {
        let command = script(COUNT, key).arg(by).arg(ms(window)).take();
        let (total, ends_in_ms) = pair(&self.call(key, &command).await?)?;
        Ok(Count { total, ends_in_ms })
    }

    pub(crate) async fn publish(&self, channel: &str) -> Result<(), CacheError> {
        let name = if self.topology.is_cluster() { "SPUBLISH" } else { "PUBLISH" };
        match self.call(channel, cmd(name).arg(channel).arg("")).await? {
            Value::Int(_) => Ok(()),
            _ => Err(CacheError::Unexpected),
        }
    }

    async fn held(&self, key: &str, command: &Cmd) -> Result<bool, CacheError> {
        match self.call(key, command).await? {
            Value::Int(held) => Ok(held == 1),
            _ => Err(CacheError::Unexpected),
        }
    }
}

/// The server keeps what it has compiled of a script by its text.
fn script(text: &str, key: &str) -> Cmd {
    cmd("EVAL").arg(text).arg(1).arg(key).take()
}

fn pair(value: &Value) -> Result<(u64, u64), CacheError> {
    if let Value::Array(items) = value
        && let [Value::Int(first), Value::Int(second)] = items[..]
        && let (Ok(first), Ok(second)) = (u64::try_from(first), u64::try_from(second))
    {
        return Ok((first, second));
    }
    Err(CacheError::Unexpected)
}

/// A time of nothing is a millisecond: the server refuses 0.
fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).clamp(1, i64::MAX as u64 / 4)
}
