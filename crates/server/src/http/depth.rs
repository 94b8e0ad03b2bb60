//! How deep a JSON text nests, found by a scan before anything parses it.

use toolyard_protocol::{ApiError, ErrorCode, limits};

/// Refuses a text that nests deeper than [`limits::JSON_DEPTH`]. It does not
/// check that the text is JSON: the parser does.
pub(crate) fn check(text: &[u8]) -> Result<(), ApiError> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for &byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > limits::JSON_DEPTH {
                    let most = limits::JSON_DEPTH;
                    return Err(ApiError::limit(
                        ErrorCode::InvalidJson,
                        most as u64,
                        format!("The body nests deeper than {most} levels"),
                    ));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_inside_strings_do_not_count() {
        let text = format!("{{\"a\":\"{}\\\"[\"}}", "[".repeat(100));
        assert_eq!(check(text.as_bytes()), Ok(()));
    }

    #[test]
    fn x5_the_level_after_the_limit_is_refused() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(check(nested(limits::JSON_DEPTH).as_bytes()).is_ok());
        assert!(check(nested(limits::JSON_DEPTH + 1).as_bytes()).is_err());
        assert!(check("[".repeat(100_000).as_bytes()).is_err());
        // Neighbours are not nested.
        assert!(check("[],".repeat(10_000).as_bytes()).is_ok());
    }
}
