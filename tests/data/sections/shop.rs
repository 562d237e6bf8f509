//! fn no() {
use std::fmt;

/// One item.
#[derive(Debug, Clone)]
pub struct Item<'a> {
    name: &'a str,
}

pub enum Kind { A, B }

impl<'a> fmt::Display for Item<'a> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = '{';
        write!(f, "{}{{", self.name)
    }
}

impl<'a, T> Shop<'a, T>
where
    T: Clone,
{
    /// Makes one.
    #[must_use]
    pub(crate) async fn new<F>(name: &'a str, f: F) -> Self
    where
        F: Fn(i32) -> i32,
    {
        let raw = r#"fn raw() { " "#;
        match f(1) {
            1 => Shop { name },
            _ => {
                let add = |x: i32| { x + 1 };
                Shop { name }
            }
        }
    }

    fn short(&self) -> usize { 1 }
}

pub trait Sell {
    fn sell(&self) -> u32;
    fn twice(&self) -> u32 {
        self.sell() * 2
    }
}

macro_rules! square {
    ($x:expr) => { $x * $x };
}

mod tests {
    #[test]
    fn works() {
        assert_eq!(square!(2), 4, "text over
lines }");
    }
}
