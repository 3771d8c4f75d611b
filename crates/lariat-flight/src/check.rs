//! CRC-32, as in zip and Ethernet.

/// The remainders of all byte values.
const TABLE: [u32; 256] = table();

/// Computes the table.
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = rest & 1;
            rest >>= 1;
            if carry == 1 {
                rest ^= 0xEDB8_8320;
            }
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

/// Returns the checksum of consecutive parts.
pub(crate) fn crc32(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    !bytes.fold(!0, |rest, byte| {
        TABLE[usize::from(rest as u8 ^ byte)] ^ (rest >> 8)
    })
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn the_check_value_of_the_standard_comes_out() {
        assert_eq!(crc32(&[b"1234", b"56789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[]), 0);
    }
}
