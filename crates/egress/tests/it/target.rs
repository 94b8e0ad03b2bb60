//! Which addresses the operator may write.

use toolyard_egress::{EgressError, Target};

#[test]
fn only_http_addresses_without_credentials_are_taken() {
    for fine in ["http://127.0.0.1:11434/v1", "https://api.example.com", " https://[::1]:8/x "] {
        assert!(Target::parse(fine).is_ok(), "{fine}");
    }
    for bad in [
        "",
        "example.com",
        "file:///etc/passwd",
        "ftp://example.com",
        "https://key@example.com",
        "https://a:hunter2@example.com",
        "http://",
    ] {
        let error = Target::parse(bad).unwrap_err();
        assert!(matches!(error, EgressError::Refused(_)), "{bad}: {error:?}");
        assert!(!error.causes().contains("hunter2"));
    }
}

#[test]
fn below_joins_with_one_slash_and_keeps_the_query() {
    let expected = Target::parse("https://e.com/v1/chat/completions?api-version=2").unwrap();
    for base in ["https://e.com/v1?api-version=2", "https://e.com/v1/?api-version=2"] {
        assert_eq!(Target::parse(base).unwrap().below("/chat/completions"), expected);
    }
}

#[test]
fn debug_shows_the_origin_only() {
    let target = Target::parse("https://e.com:444/secret-path?key=secret-query").unwrap();
    let shown = format!("{target:?}");
    assert!(shown.contains("https://e.com:444") && !shown.contains("secret"), "{shown}");
}

#[test]
fn what_no_request_can_carry_is_refused() {
    let long = format!("https://e.com/{}", "a".repeat(70_000));
    for bad in ["http://a{b}.com/", "http://a`b.com/", long.as_str()] {
        let error = Target::parse(bad).unwrap_err();
        assert!(matches!(error, EgressError::Refused(_)), "{error:?}");
        assert!(error.never_sent() && error.causes().starts_with("the address is too long, or"), "{error}");
    }
}
