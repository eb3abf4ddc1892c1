//! The one encoding digests are taken over: RFC 8785 (JSON Canonicalization Scheme).
//!
//! Any JCS implementation produces the same bytes, so an auditor needs none of our code. On top of
//! the RFC, integers that a double cannot hold exactly are refused: two different values would
//! otherwise share their bytes, and so their digest.

mod write;

use serde::Serialize;

/// Deepest nesting that is encoded.
pub const MAX_DEPTH: usize = 128;

const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Why a value has no canonical encoding.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// The value cannot be written as JSON at all.
    #[error("the value is not representable as JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// An integer too large for JSON readers to agree on.
    #[error("the integer {0} is beyond ±(2^53 - 1): write it as a string")]
    UnsafeInteger(String),
    /// Nested deeper than any honest message.
    #[error("the value is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// The canonical bytes of a value.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let mut out = Vec::with_capacity(256);
    value.serialize(write::CanonicalWriter {
        out: &mut out,
        depth: 0,
    })?;
    Ok(out)
}

impl serde::ser::Error for CanonicalError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::NotJson(serde::ser::Error::custom(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn canonical(value: &Value) -> String {
        String::from_utf8(to_vec(value).unwrap()).unwrap()
    }

    #[test]
    fn keys_are_sorted_and_space_is_gone() {
        assert_eq!(
            canonical(&json!({"b": [1, 2], "a": null})),
            r#"{"a":null,"b":[1,2]}"#
        );
    }

    #[test]
    fn the_example_of_the_rfc_gives_the_bytes_of_the_rfc() {
        let value: Value = serde_json::from_str(
            "{\"numbers\":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],\
             \"string\":\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\",\
             \"literals\":[null,true,false]}",
        )
        .unwrap();
        assert_eq!(
            canonical(&value),
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
             \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"
        );
    }

    #[test]
    fn keys_sort_by_utf16_units_as_the_rfc_says() {
        let value = json!({"\u{fb33}": 1, "\u{1f600}": 2, "\u{20ac}": 3});
        assert_eq!(
            canonical(&value),
            "{\"\u{20ac}\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}"
        );
    }

    #[test]
    fn one_number_has_one_spelling() {
        assert_eq!(canonical(&json!([1.0, -0.0, 1e2])), "[1,0,100]");
    }

    #[test]
    fn integers_that_readers_would_round_are_refused() {
        let error = to_vec(&json!({"n": 9_007_199_254_740_992_u64})).unwrap_err();
        assert!(
            error.to_string().contains("write it as a string"),
            "{error}"
        );
        assert!(to_vec(&json!(-9_007_199_254_740_992_i64)).is_err());
        assert!(to_vec(&json!(9_007_199_254_740_991_u64)).is_ok());
    }

    #[test]
    fn every_shape_is_written_as_its_json_would_be() {
        #[derive(Serialize)]
        struct Unit;
        #[derive(Serialize)]
        struct Pair(u8, i128);
        #[derive(Serialize)]
        enum Shape {
            Unit,
            Newtype(f32),
            Tuple(char, ()),
            Struct { z: Option<u8>, a: Option<u8> },
        }
        #[derive(Serialize)]
        struct AllShapes {
            shapes: Vec<Shape>,
            unit: Unit,
            pair: Pair,
            map: std::collections::BTreeMap<i32, bool>,
            #[serde(flatten)]
            rest: std::collections::BTreeMap<String, Value>,
        }
        let all = AllShapes {
            shapes: vec![
                Shape::Unit,
                Shape::Newtype(1.5),
                Shape::Tuple('"', ()),
                Shape::Struct {
                    z: None,
                    a: Some(1),
                },
            ],
            unit: Unit,
            pair: Pair(1, -2),
            map: [(10, true), (9, false)].into(),
            rest: [("é".to_owned(), json!([])), ("a".to_owned(), json!({}))].into(),
        };
        assert_eq!(
            String::from_utf8(to_vec(&all).unwrap()).unwrap(),
            "{\"a\":{},\"map\":{\"10\":true,\"9\":false},\"pair\":[1,-2],\"shapes\":[\"Unit\",\
             {\"Newtype\":1.5},{\"Tuple\":[\"\\\"\",null]},{\"Struct\":{\"a\":1,\"z\":null}}],\
             \"unit\":null,\"é\":[]}"
        );
        let through_json = serde_json::to_value(&all).unwrap();
        assert_eq!(to_vec(&all).unwrap(), to_vec(&through_json).unwrap());
    }

    #[test]
    fn what_json_has_no_name_for_is_refused() {
        let map: std::collections::BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
        let error = to_vec(&map).unwrap_err();
        assert!(error.to_string().contains("must be a text"), "{error}");
        assert_eq!(to_vec(&f64::NAN).unwrap(), b"null");
        assert!(to_vec(&u128::MAX).is_err());
    }

    /// Of two fields with one name the later counts.
    #[test]
    fn a_field_that_comes_twice_counts_once() {
        #[derive(Serialize)]
        struct RepeatedField {
            b: u8,
            a: u8,
            #[serde(flatten)]
            again: std::collections::BTreeMap<&'static str, u8>,
        }
        let twice = RepeatedField {
            b: 1,
            a: 2,
            again: [("a", 3)].into(),
        };
        assert_eq!(to_vec(&twice).unwrap(), br#"{"a":3,"b":1}"#);
    }

    #[test]
    fn bottomless_nesting_is_refused() {
        let mut value = json!(1);
        for _ in 0..=MAX_DEPTH {
            value = json!([value]);
        }
        assert!(matches!(to_vec(&value), Err(CanonicalError::TooDeep)));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-1_000_000_000_000_i64..1_000_000_000_000).prop_map(Value::from),
            any::<f64>()
                .prop_filter("finite", |f| f.is_finite())
                .prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The same value with its object fields inserted in the opposite order.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(reversed).collect(),
            Value::Object(fields) => fields
                .iter()
                .rev()
                .map(|(k, v)| (k.clone(), reversed(v)))
                .collect(),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn equal_values_have_equal_bytes(value in any_json()) {
            prop_assert_eq!(to_vec(&value).unwrap(), to_vec(&reversed(&value)).unwrap());
        }

        #[test]
        fn the_bytes_are_a_fixed_point(value in any_json()) {
            let once = to_vec(&value).unwrap();
            // A double of 2^53 and above is written as an integer; reading it back refuses it.
            if let Ok(again) = to_vec(&serde_json::from_slice::<Value>(&once).unwrap()) {
                prop_assert_eq!(again, once);
            }
        }

        #[test]
        fn different_texts_have_different_bytes(a: String, b: String) {
            prop_assert_eq!(a == b, to_vec(&a).unwrap() == to_vec(&b).unwrap());
        }
    }
}
