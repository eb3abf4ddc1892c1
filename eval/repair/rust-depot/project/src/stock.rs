//! What lies on which shelf.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub sku: String,
    pub count: u32,
    pub reserved: u32,
    pub minimum: u32,
}

#[derive(Debug, PartialEq)]
pub enum StockError {
    Unknown(String),
    NotEnough { wanted: u32, free: u32 },
}

#[derive(Debug, Default)]
pub struct Stock {
    items: BTreeMap<String, Item>,
}

impl Item {
    pub fn free(&self) -> u32 {
        self.count.saturating_sub(self.reserved)
    }

    pub fn is_low(&self) -> bool {
        self.free() < self.minimum
    }
}

impl Stock {
    pub fn receive(&mut self, sku: &str, count: u32, minimum: u32) {
        let item = self.items.entry(sku.to_string()).or_insert(Item {
            sku: sku.to_string(),
            count: 0,
            reserved: 0,
            minimum,
        });
        item.count += count;
        item.minimum = minimum;
    }

    pub fn get(&self, sku: &str) -> Option<&Item> {
        self.items.get(sku)
    }

    pub fn reserve(&mut self, sku: &str, wanted: u32) -> Result<u32, StockError> {
        let item = self
            .items
            .get_mut(sku)
            .ok_or_else(|| StockError::Unknown(sku.to_string()))?;
        let free = item.free();
        if wanted > free {
            return Err(StockError::NotEnough { wanted, free });
        }
        item.reserved += wanted;
        Ok(free - wanted)
    }

    pub fn ship(&mut self, sku: &str, count: u32) -> Result<(), StockError> {
        let item = self
            .items
            .get_mut(sku)
            .ok_or_else(|| StockError::Unknown(sku.to_string()))?;
        if count > item.reserved {
            return Err(StockError::NotEnough {
                wanted: count,
                free: item.reserved,
            });
        }
        item.reserved -= count;
        item.count -= count;
        Ok(())
    }

    /// Articles to order, with the amount that fills them up to twice their minimum.
    pub fn reorder(&self) -> Vec<(String, u32)> {
        self.items
            .values()
            .filter(|item| item.is_low())
            .map(|item| (item.sku.clone(), item.minimum * 2 - item.free()))
            .collect()
    }

    pub fn total(&self) -> u32 {
        self.items.values().map(|item| item.count).sum()
    }
}
