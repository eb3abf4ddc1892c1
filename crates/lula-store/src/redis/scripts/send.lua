-- Sends a signal and makes a waiting run due.
local prefix, run, body = ARGV[1], ARGV[2], ARGV[3]
local key = prefix .. ':run:' .. run
local row = redis.call('HMGET', key, 'status', 'graph')
if not row[1] then return -1 end
local id = redis.call('INCR', prefix .. ':sigseq')
redis.call('HSET', prefix .. ':sig:' .. run, tostring(id), body)
if row[1] == 'suspended' then
  redis.call('HSET', key, 'status', 'ready', 'due', '0')
  redis.call('ZADD', prefix .. ':due:' .. row[2], 0, run)
end
redis.call('XADD', prefix .. ':watch', 'MAXLEN', '~', 10000, '*', 'h', 's:' .. run)
return id
