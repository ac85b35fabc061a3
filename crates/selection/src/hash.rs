//! A hash that is the same in every process: where a session goes does not depend on which proxy it comes to.

/// FNV-1a over parts, with their ends marked, and a final mix.
pub(crate) fn of_parts(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for part in parts {
        part.iter().for_each(|&byte| take(byte));
        // No UTF-8 text has this byte.
        take(0xff);
    }
    mix(hash)
}

/// Two hashes made into one.
pub(crate) const fn together(one: u64, other: u128) -> u64 {
    mix(one ^ mix(other as u64 ^ mix((other >> 64) as u64)))
}

/// The finaliser of SplitMix64: each bit of the input changes half of the output.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
