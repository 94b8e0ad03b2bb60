//! L1–L9, L19, L27, H17, H20, SPEC part 2 rows 1, 2, 4, and X4: lists of tool definitions.

use serde_json::{Value, json};
use toolyard_schema::{
    DefinitionError, Limits, NameRule, ToolDefinition, ToolOptions, safe_validate_tool_definitions,
    validate_tool_definitions,
};

use crate::object;

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "Does it", "parameters": object(&json!({}))})
}

fn refusal(definitions: &[Value]) -> String {
    validate_tool_definitions(definitions, &Limits::request(), NameRule::Config).unwrap_err().to_string()
}

fn code_of(definition: &Value, limits: &Limits) -> &'static str {
    match validate_tool_definitions(std::slice::from_ref(definition), limits, NameRule::Config) {
        Ok(_) => "accepted",
        Err(errors) => errors.code(),
    }
}

#[test]
fn row4_l19_the_three_shapes_become_one() {
    let schema = object(&json!({"q": {"type": "string"}}));
    let shapes = [
        json!({"name": "find", "description": "Find", "parameters": schema}),
        json!({"name": "find", "description": "Find", "inputSchema": schema}),
        json!({"type": "function", "function":
            {"name": "find", "description": "Find", "parameters": schema}}),
        json!({"type": "function", "function":
            {"name": "find", "description": "Find", "inputSchema": schema}}),
    ];
    let expected = ToolDefinition {
        name: "find".to_owned(),
        description: "Find".to_owned(),
        schema,
        options: ToolOptions::default(),
    };
    for shape in shapes {
        for limits in [Limits::request(), Limits::trusted()] {
            let tools = validate_tool_definitions(std::slice::from_ref(&shape), &limits, NameRule::Chat);
            assert_eq!(tools.unwrap().as_slice(), std::slice::from_ref(&expected), "{shape}");
        }
    }
}

#[test]
fn row4_mixed_up_shapes_are_refused() {
    let schema = object(&json!({}));
    let cases = [
        (json!("tool"), "tool_not_an_object"),
        (json!(null), "tool_not_an_object"),
        (json!([]), "tool_not_an_object"),
        (json!({"function": {"name": "a", "description": "d", "parameters": schema}}), "tool_wrapper_type"),
        (json!({"type": "tool", "function": {"name": "a"}}), "tool_wrapper_type"),
        (json!({"type": "function", "function": "a"}), "tool_not_an_object"),
        (
            json!({"name": "a", "description": "d", "parameters": schema, "inputSchema": schema}),
            "tool_schema_twice",
        ),
        (json!({"name": "a", "description": "d"}), "tool_schema_missing"),
        (json!({"name": "a", "description": "d", "parameters": null}), "schema_root_type"),
        (json!({"description": "d", "parameters": schema}), "tool_name_missing"),
        (json!({"name": 7, "description": "d", "parameters": schema}), "tool_name_missing"),
        (json!({"name": "a", "parameters": schema}), "tool_description_missing"),
        (json!({"name": "a", "description": 7, "parameters": schema}), "tool_description_type"),
        (json!({}), "tool_name_missing"),
    ];
    for (definition, code) in cases {
        assert_eq!(code_of(&definition, &Limits::request()), code, "{definition}");
    }
}

#[test]
fn trusted_definitions_may_leave_description_and_schema_out() {
    let tools = validate_tool_definitions(&[json!({"name": "now"})], &Limits::trusted(), NameRule::Config);
    assert_eq!(
        tools.unwrap(),
        [ToolDefinition {
            name: "now".to_owned(),
            description: String::new(),
            schema: json!({"type": "object", "properties": {}}),
            options: ToolOptions::default(),
        }]
    );
}

/// H17 and the test of the first document's project: `my-tool` is refused in a chat.
#[test]
fn row1_h17_chat_names() {
    let long = "a".repeat(64);
    for name in ["a", "A", "read_file", "x1", "a__b", "getWeather", long.as_str()] {
        assert!(NameRule::Chat.accepts(name), "{name}");
    }
    let too_long = "a".repeat(65);
    for name in [
        "",
        "my-tool",
        "1a",
        "_a",
        "a b",
        "a.b",
        "a/b",
        "ä",
        "а",
        "a\n",
        "\na",
        "a\0",
        "a$",
        "__proto__",
        "constructor",
        "prototype",
        "read\u{200B}file",
        "ｒead",
        too_long.as_str(),
    ] {
        assert!(!NameRule::Chat.accepts(name), "{name}");
    }
}

/// L2 and the test of the second document's project: `my-tool_name-123` is accepted.
#[test]
fn row1_l2_config_names() {
    let long = "-".repeat(64);
    for name in ["a", "my-tool_name-123", "1", "_", "-", "mcp_files_read", long.as_str()] {
        assert!(NameRule::Config.accepts(name), "{name}");
    }
    let too_long = "a".repeat(65);
    for name in [
        "",
        "a b",
        "a.b",
        "a/b",
        "a:b",
        "ä",
        "а",
        "a\n",
        "a\0",
        "a\u{200B}",
        "a\u{202E}",
        "__proto__",
        "constructor",
        "prototype",
        too_long.as_str(),
    ] {
        assert!(!NameRule::Config.accepts(name), "{name}");
    }
}

#[test]
fn l8_l27_refusals_begin_as_documented_and_name_the_tool() {
    assert_eq!(refusal(&[tool("")]), "Invalid client tool definitions: Tool #1: has no name");
    assert_eq!(
        refusal(&[tool("ok"), tool("not ok!")]),
        "Invalid client tool definitions: Tool not ok! (#2): invalid name: use 1-64 letters, \
         digits, hyphens and underscores"
    );
    let two =
        refusal(&[tool("a b"), json!({"name": "c", "description": "d", "parameters": {"type": "array"}})]);
    assert_eq!(
        two,
        "Invalid client tool definitions: Tool a b (#1): invalid name: use 1-64 letters, digits, \
         hyphens and underscores; Tool c (#2): the schema must be an object schema: `type` at the \
         root must be \"object\""
    );
}

#[test]
fn l7_duplicates_are_named_once_each() {
    let tools = [tool("a"), tool("b"), tool("a"), tool("c"), tool("b"), tool("a")];
    let errors = validate_tool_definitions(&tools, &Limits::request(), NameRule::Chat).unwrap_err();
    assert_eq!(errors.to_string(), "Invalid client tool definitions: Duplicate tool names: a, b");
    assert_eq!(errors.code(), "tool_names_duplicate");
    // Names differ by case for models, so they do here.
    assert!(validate_tool_definitions(&[tool("a"), tool("A")], &Limits::request(), NameRule::Chat).is_ok());
}

#[test]
fn row2_h20_the_eleventh_tool_is_refused_with_limit_and_count() {
    let tools: Vec<Value> = (0..11).map(|n| tool(&format!("t{n}"))).collect();
    assert_eq!(
        validate_tool_definitions(&tools[..10], &Limits::request(), NameRule::Chat).unwrap().len(),
        10
    );
    let errors = validate_tool_definitions(&tools, &Limits::request(), NameRule::Chat).unwrap_err();
    assert_eq!(errors.errors(), [DefinitionError::TooMany { limit: 10, count: 11 }]);
    assert_eq!(
        errors.to_string(),
        "Invalid client tool definitions: Too many tools: 11 given, at most 10 allowed"
    );
    assert_eq!(errors.code(), "too_many_tools");
    let secret = Limits::request().with_max_tools(128);
    assert_eq!(validate_tool_definitions(&tools, &secret, NameRule::Chat).unwrap().len(), 11);
    assert_eq!(Limits::trusted().max_tools, 128);
}

/// Beyond the limit no tool is looked at, however bad.
#[test]
fn row2_too_many_tools_cost_nothing() {
    let tools = vec![json!({"name": {"deep": []}}); 100_000];
    let errors = validate_tool_definitions(&tools, &Limits::trusted(), NameRule::Config).unwrap_err();
    assert_eq!(errors.errors(), [DefinitionError::TooMany { limit: 128, count: 100_000 }]);
}

fn described(description: &str) -> Value {
    json!({"name": "a", "description": description, "parameters": object(&json!({}))})
}

#[test]
fn l3_x4_descriptions_have_a_length() {
    let request = Limits::request();
    assert_eq!(code_of(&described(""), &request), "tool_description_missing");
    assert_eq!(code_of(&described("x"), &request), "accepted");
    assert_eq!(code_of(&described(&"é".repeat(1024)), &request), "accepted");
    assert_eq!(code_of(&described(&"🙂".repeat(1024)), &request), "accepted");
    for text in ["é".repeat(1025), "x".repeat(1_000_000)] {
        assert_eq!(code_of(&described(&text), &request), "tool_description_too_long");
    }
    assert!(refusal(&[described(&"x".repeat(1025))]).ends_with("longer than 1024 characters"));
    let trusted = Limits::trusted();
    assert_eq!(code_of(&described(&"x".repeat(4096)), &trusted), "accepted");
    assert_eq!(code_of(&described(&"x".repeat(4097)), &trusted), "tool_description_too_long");
}

#[test]
fn x4_hidden_characters_are_refused_wherever_a_model_reads() {
    let hidden = "see\u{E0041}\u{202E}this";
    let tools = [
        described(hidden),
        json!({"name": "a", "description": "d", "parameters": object(&json!({"p": {"description": hidden}}))}),
        json!({"name": "a", "description": "d", "parameters": object(&json!({hidden: {}}))}),
        json!({"name": "a", "description": "d", "parameters":
            {"type": "object", "properties": {}, "title": hidden}}),
        json!({"name": "a", "description": "d", "parameters":
            object(&json!({"p": {"anyOf": [{"title": hidden}]}}))}),
    ];
    for definition in &tools {
        for limits in [Limits::request(), Limits::trusted()] {
            assert_eq!(code_of(definition, &limits), "tool_hidden_character", "{definition}");
        }
    }
    assert_eq!(
        refusal(&tools[..1]),
        "Invalid client tool definitions: Tool a (#1): the description has the hidden character \
         U+E0041"
    );
    // A constant is data, not prose.
    let data = json!({"name": "a", "description": "d", "parameters":
        object(&json!({"p": {"const": "\u{200B}"}}))});
    assert_eq!(code_of(&data, &Limits::request()), "accepted");
}

#[test]
fn hostile_names_are_cleaned_and_cut_in_messages() {
    let name = format!("x\u{202E}\n{}", "y".repeat(100_000));
    let text = refusal(&[tool(&name)]);
    assert!(text.len() < 300, "{}", text.len());
    assert!(text.contains("x\\u{202e}\\u{a}yyy"), "{text}");
}

/// A definition built in memory, not parsed: nothing has limited its depth yet.
#[test]
fn a_bottomless_schema_is_refused_before_it_is_copied() {
    let mut definition = tool("a");
    definition["parameters"] = crate::hostile::nested(2_000);
    assert_eq!(code_of(&definition, &Limits::trusted()), "schema_too_nested");
    // Dropping a value recurses as deep as the value: not what is tested here.
    std::mem::forget(definition);
}

#[test]
fn l9_the_safe_twin_answers_for_any_json() {
    let safe = |value: &Value| {
        serde_json::to_value(safe_validate_tool_definitions(value, &Limits::request(), NameRule::Config))
            .unwrap()
    };
    let good = tool("find");
    assert_eq!(
        safe(&json!([good])),
        json!({"success": true, "data": [good], "warnings": []}),
        "what is accepted reads as it was written"
    );
    assert_eq!(
        safe(&json!([{"name": "no good", "description": "d", "parameters": object(&json!({}))}])),
        json!({"success": false, "errors":
            ["Tool no good (#1): invalid name: use 1-64 letters, digits, hyphens and underscores"]})
    );
    for odd in [json!(null), json!({}), json!("tools"), json!(7)] {
        assert_eq!(safe(&odd), json!({"success": false, "errors": ["The tool definitions must be a list"]}));
    }
}

#[test]
fn l29_l30_versions_are_kept_and_deprecated_tools_are_taken_with_a_warning() {
    let definitions = json!([
        {"name": "old", "description": "d", "parameters": object(&json!({})), "deprecated": "use find"},
        {"name": "older", "description": "d", "parameters": object(&json!({})), "deprecated": true},
        {"name": "find", "description": "d", "parameters": object(&json!({})),
            "version": "2.1.0", "deprecated": false},
    ]);
    let found = safe_validate_tool_definitions(&definitions, &Limits::request(), NameRule::Chat);
    let found = serde_json::to_value(found).unwrap();
    assert_eq!(found["warnings"], json!(["Tool old is deprecated: use find", "Tool older is deprecated"]));
    assert_eq!(found["data"][2]["version"], "2.1.0");
    assert_eq!(found["data"][2].get("deprecated"), None);
}

#[test]
fn odd_options_are_refused_and_unknown_ones_are_passed_over() {
    let with = |field: &str, value: Value| {
        let mut tool = tool("find");
        tool[field] = value;
        code_of(&tool, &Limits::request())
    };
    let cases = [
        ("version", json!(2)),
        ("version", json!("")),
        ("version", json!("v".repeat(65))),
        ("version", json!("1\u{200B}0")),
        ("deprecated", json!(3)),
        ("deprecated", json!("x".repeat(257))),
        ("risk", json!("none")),
        ("ifAbsent", json!("maybe")),
        ("timeoutMs", json!(0)),
        ("timeoutMs", json!(1.5)),
        ("timeoutMs", json!("1000")),
        ("expiresMs", json!(u64::MAX)),
        ("serviceId", json!(["a"])),
    ];
    for (field, value) in cases {
        assert_eq!(with(field, value.clone()), "tool_option_invalid", "{field}: {value}");
    }
    for (field, value) in [("color", json!("red")), ("approval", json!("allow")), ("version", Value::Null)] {
        assert_eq!(with(field, value), "accepted", "{field}");
    }
}
