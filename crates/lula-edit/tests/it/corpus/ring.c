#include <stddef.h>
#include <string.h>

struct ring {
    unsigned char data[256];
    size_t head;
    size_t tail;
};

/* Puts one byte; 0 when the ring is full. */
int ring_put(struct ring *r, unsigned char byte)
{
    size_t next = (r->head + 1) % sizeof r->data;
    if (next == r->tail)
        return 0;
    r->data[r->head] = byte;
    r->head = next;
    return 1;
}

/* Takes one byte; 0 when the ring is empty. */
int ring_get(struct ring *r, unsigned char *byte)
{
    if (r->head == r->tail)
        return 0;

    *byte = r->data[r->tail];
    r->tail = (r->tail + 1) % sizeof r->data;
    return 1;
}

void ring_clear(struct ring *r)
{
    memset(r, 0, sizeof *r);
}
