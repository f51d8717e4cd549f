//! From JSON, path and headers to domain values. Reports every wrong field at once.

use actix_web::HttpRequest;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    domain::{IdempotencyKey, Lines, OnHand, Quantity, Sku},
    problem::Problem,
};

/// The header with a client's key.
pub(super) const KEY: &str = "Idempotency-Key";

/// Most lines of an order.
const LINES_MAX: usize = 50;

/// Collects what is wrong, field by field.
struct Fields {
    errors: Vec<(String, String)>,
}

impl Fields {
    fn wrong(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.errors.push((field.into(), message.into()));
    }

    /// An object with exactly the given fields; `at` is where it stands.
    fn object<'a>(&mut self, value: &'a Value, at: &str, known: &[&str]) -> Option<&'a Map<String, Value>> {
        let inside = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        let Some(object) = value.as_object() else {
            let field = if at.is_empty() { "body" } else { at };
            self.wrong(field, "must be an object");
            return None;
        };
        for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
            self.wrong(inside(name), format!("is not known; known are {}", known.join(", ")));
        }
        for name in known.iter().filter(|name| !object.contains_key(**name)) {
            self.wrong(inside(name), "is required");
        }
        Some(object)
    }

    fn finish<T>(self, code: &'static str, value: Option<T>) -> Result<T, Problem> {
        match (value, self.errors.first()) {
            (Some(value), None) => Ok(value),
            (_, first) => {
                let (field, message) = first.cloned().unwrap_or_default();
                let all =
                    self.errors.iter().map(|(field, message)| json!({"field": field, "message": message}));
                let all: Vec<Value> = all.collect();
                Err(Problem::new(code, format!("{field} {message}."))
                    .with("field", field)
                    .with("errors", all))
            }
        }
    }
}

/// The lines of an order.
pub(super) fn order(body: &Value) -> Result<Lines, Problem> {
    let mut fields = Fields { errors: Vec::new() };
    let lines = fields.object(body, "", &["lines"]).and_then(|object| object.get("lines"));
    let lines = lines.and_then(|lines| match lines.as_array() {
        Some(lines) if (1..=LINES_MAX).contains(&lines.len()) => Some(lines),
        _ => {
            fields.wrong("lines", format!("must be a list of 1 to {LINES_MAX} lines"));
            None
        }
    });
    let parsed: Option<Vec<_>> = lines.and_then(|lines| {
        let parsed: Vec<_> = lines.iter().enumerate().map(|(i, value)| line(&mut fields, i, value)).collect();
        parsed.into_iter().collect()
    });
    fields.finish("invalid-order", parsed.and_then(|lines| Lines::add_up(lines).ok()))
}

fn line(fields: &mut Fields, index: usize, value: &Value) -> Option<(Sku, Quantity)> {
    let at = format!("lines[{index}]");
    let object = fields.object(value, &at, &["sku", "quantity"])?;
    let sku = object.get("sku").and_then(|value| {
        let parsed = value.as_str().and_then(|text| Sku::parse(text).ok());
        parsed.or_else(|| {
            fields.wrong(format!("{at}.sku"), crate::domain::BadSku.to_string());
            None
        })
    });
    let quantity = object.get("quantity").and_then(|value| {
        Quantity::new(value.as_i64())
            .map_err(|error| fields.wrong(format!("{at}.quantity"), error.to_string()))
            .ok()
    });
    Some((sku?, quantity?))
}

/// `{"on_hand": n}`
pub(super) fn on_hand(body: &Value) -> Result<OnHand, Problem> {
    number(body, "on_hand", OnHand::new)
}

/// `{"quantity": n}`
pub(super) fn quantity(body: &Value) -> Result<Quantity, Problem> {
    number(body, "quantity", Quantity::new)
}

/// `{"work_ms": n}`
pub(super) fn work_ms(body: &Value) -> Result<u64, Problem> {
    const MAX: i64 = 600_000;
    number(body, "work_ms", |millis| {
        let millis = millis.filter(|millis| (0..=MAX).contains(millis));
        millis.map(i64::unsigned_abs).ok_or(format!("must be a whole number from 0 to {MAX}"))
    })
}

fn number<T, E: ToString>(
    body: &Value,
    name: &str,
    parse: impl FnOnce(Option<i64>) -> Result<T, E>,
) -> Result<T, Problem> {
    let mut fields = Fields { errors: Vec::new() };
    let value = fields.object(body, "", &[name]).and_then(|object| object.get(name));
    let parsed = value
        .and_then(|value| parse(value.as_i64()).map_err(|error| fields.wrong(name, error.to_string())).ok());
    fields.finish("invalid-request", parsed)
}

/// The SKU of the path.
pub(super) fn sku(request: &HttpRequest) -> Result<Sku, Problem> {
    let text = request.match_info().get("sku").unwrap_or_default();
    Sku::parse(text)
        .map_err(|error| Problem::new("invalid-request", format!("The SKU {error}.")).with("field", "sku"))
}

/// The order's id of the path.
pub(super) fn order_id(request: &HttpRequest) -> Result<Uuid, Problem> {
    let text = request.match_info().get("id").unwrap_or_default();
    text.parse()
        .map_err(|_| Problem::new("invalid-request", "The order's id must be a UUID.").with("field", "id"))
}

/// The `Idempotency-Key` header.
pub(super) fn key(request: &HttpRequest) -> Result<Option<IdempotencyKey>, Problem> {
    let mut values = request.headers().get_all(KEY);
    let parsed = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => IdempotencyKey::parse(value.as_bytes()),
        (Some(_), Some(_)) => Err(crate::domain::BadKey),
    };
    parsed
        .map(Some)
        .map_err(|error| Problem::new("invalid-request", format!("{KEY} {error}.")).with("field", KEY))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field(body: &Value) -> String {
        let problem: Value = serde_json::from_str(&order(body).unwrap_err().to_json()).unwrap();
        problem["field"].as_str().unwrap().to_owned()
    }

    #[test]
    fn each_wrong_field_is_named() {
        for (body, expected) in [
            (json!([]), "body"),
            (json!({}), "lines"),
            (json!({"lines": []}), "lines"),
            (json!({"lines": {}}), "lines"),
            (json!({"lines": [{"sku": "a", "quantity": 1}], "note": ""}), "note"),
            (json!({"lines": [1]}), "lines[0]"),
            (json!({"lines": [{"sku": "a", "quantity": 1}, {"sku": "a"}]}), "lines[1].quantity"),
            (json!({"lines": [{"sku": "a", "quantity": 1, "price": 3}]}), "lines[0].price"),
            (json!({"lines": [{"sku": "ä", "quantity": 1}]}), "lines[0].sku"),
            (json!({"lines": [{"sku": 5, "quantity": 1}]}), "lines[0].sku"),
            (json!({"lines": [{"sku": "a", "quantity": "1"}]}), "lines[0].quantity"),
            (json!({"lines": [{"sku": "a", "quantity": 1.5}]}), "lines[0].quantity"),
            (json!({"lines": [{"sku": "a", "quantity": 0}]}), "lines[0].quantity"),
            (json!({"lines": vec![json!({"sku": "a", "quantity": 1}); 51]}), "lines"),
        ] {
            assert_eq!(field(&body), expected, "{body}");
        }
    }

    #[test]
    fn all_wrong_fields_are_listed() {
        let body = json!({"lines": [{"sku": "", "quantity": -1}], "x": 1});
        let problem: Value = serde_json::from_str(&order(&body).unwrap_err().to_json()).unwrap();
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(3), "{problem}");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let name = prop_oneof![Just("lines"), Just("sku"), Just("quantity"), Just("other")];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((name, inner), 0..4)
                    .prop_map(|members| members.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_comes_is_an_order_or_names_a_field(body in any_json()) {
            if let Err(problem) = order(&body) {
                let problem: Value = serde_json::from_str(&problem.to_json()).unwrap();
                prop_assert!(problem["field"].as_str().is_some_and(|field| !field.is_empty()));
            }
        }
    }
}
