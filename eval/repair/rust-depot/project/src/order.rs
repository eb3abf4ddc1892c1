//! Orders and their prices.

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub sku: String,
    pub quantity: u32,
    pub cents: u64,
    pub gift: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Open,
    Packed,
    Sent,
    Cancelled,
}

#[derive(Debug, Clone)]
pub struct Order {
    pub id: u32,
    pub lines: Vec<Line>,
    pub state: State,
}

pub const FREE_SHIPPING: u64 = 5000;
pub const SHIPPING: u64 = 490;
pub const GIFT_WRAP: u64 = 150;

impl Order {
    pub fn new(id: u32) -> Self {
        Order {
            id,
            lines: Vec::new(),
            state: State::Open,
        }
    }

    pub fn add(&mut self, sku: &str, quantity: u32, cents: u64) -> &mut Self {
        self.lines.push(Line {
            sku: sku.to_string(),
            quantity,
            cents,
            gift: false,
        });
        self
    }

    pub fn goods(&self) -> u64 {
        self.lines
            .iter()
            .map(|line| line.cents * u64::from(line.quantity))
            .sum()
    }

    pub fn wrapping(&self) -> u64 {
        let gifts: u32 = self
            .lines
            .iter()
            .filter(|line| line.gift)
            .map(|line| line.quantity)
            .sum();
        GIFT_WRAP * u64::from(gifts)
    }

    pub fn shipping(&self) -> u64 {
        if self.lines.is_empty() || self.goods() >= FREE_SHIPPING {
            0
        } else {
            SHIPPING
        }
    }

    pub fn total(&self) -> u64 {
        self.goods() + self.wrapping() + self.shipping()
    }

    /// A discount in percent, rounded up to whole cents.
    pub fn discounted(&self, percent: u64) -> u64 {
        let total = self.total();
        total - (total * percent.min(100)) / 100
    }

    pub fn advance(&mut self) -> bool {
        self.state = match self.state {
            State::Open if !self.lines.is_empty() => State::Packed,
            State::Packed => State::Sent,
            _ => return false,
        };
        true
    }

    pub fn cancel(&mut self) -> bool {
        if self.state == State::Sent || self.state == State::Cancelled {
            return false;
        }
        self.state = State::Cancelled;
        true
    }
}

/// The biggest orders, most valuable first; equal ones by id.
pub fn biggest(orders: &[Order], count: usize) -> Vec<u32> {
    let mut sorted: Vec<&Order> = orders.iter().collect();
    sorted.sort_by(|a, b| b.total().cmp(&a.total()).then(a.id.cmp(&b.id)));
    sorted.iter().take(count).map(|order| order.id).collect()
}
