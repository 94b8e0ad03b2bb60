//! X4: characters that hide text.

use toolyard_schema::{HiddenCharacter, clean, find_hidden};

#[test]
fn x4_hidden_characters_are_found() {
    for character in [
        '\u{0}',
        '\u{7}',
        '\u{8}',
        '\u{1B}',
        '\u{7F}',
        '\u{85}',
        '\u{9B}',
        '\u{AD}',
        '\u{34F}',
        '\u{61C}',
        '\u{115F}',
        '\u{180E}',
        '\u{200B}',
        '\u{200C}',
        '\u{200D}',
        '\u{200E}',
        '\u{200F}',
        '\u{2028}',
        '\u{2029}',
        '\u{202A}',
        '\u{202E}',
        '\u{2060}',
        '\u{2064}',
        '\u{2066}',
        '\u{2069}',
        '\u{206F}',
        '\u{3164}',
        '\u{FEFF}',
        '\u{FFA0}',
        '\u{FFF9}',
        '\u{E0001}',
        '\u{E0041}',
        '\u{E007F}',
        '\u{E0100}',
        '\u{E01EF}',
    ] {
        assert_eq!(
            find_hidden(&format!("ab{character}c")),
            Some(HiddenCharacter { character, offset: 2 }),
            "{:x}",
            u32::from(character)
        );
    }
}

#[test]
fn x4_plain_text_in_any_script_is_fine() {
    for text in [
        "",
        "plain",
        "two\nlines\twith tab",
        "windows\r\nline",
        "Grüße",
        "検索する",
        "ابحث",
        "חיפוש",
        "поиск",
        "emoji 🙂 ❤\u{FE0F}",
        "e\u{301}",
        "a\u{A0}b",
    ] {
        assert_eq!(find_hidden(text), None, "{text}");
    }
    assert!(find_hidden("overwrites\rline").is_some());
}

#[test]
fn x4_cleaning_removes_and_marks() {
    let cleaned = clean("do\u{200B} it\u{E0041}\u{202E}", 100);
    assert_eq!((cleaned.text.as_str(), cleaned.altered), ("do it", true));
    let same = clean("two\r\nlines", 100);
    assert_eq!((same.text.as_str(), same.altered), ("two\r\nlines", false));
    let cut = clean("ééé", 5);
    assert_eq!((cut.text.as_str(), cut.altered), ("éé", true));
}
