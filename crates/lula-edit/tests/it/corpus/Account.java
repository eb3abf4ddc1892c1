package bank;

public class Account {
    private long cents;
    private final String owner;

    public Account(String owner, long cents) {
        this.owner = owner;
        this.cents = cents;
    }

    public void deposit(long amount) {
        if (amount <= 0) {
            throw new IllegalArgumentException("amount");
        }
        cents += amount;
    }

    public void withdraw(long amount) {
        if (amount <= 0) {
            throw new IllegalArgumentException("amount");
        }
        if (amount > cents) {
            throw new IllegalStateException("balance");
        }
        cents -= amount;
    }

    /** The balance in cents. */
    public long balance() {
        return cents;
    }

    @Override
    public String toString() {
        String euros = cents / 100 + "." + cents % 100;

        return owner + ": " + euros;
    }
}
