-- Drops blobs that are still condemned, or were never there, and returns their digests.
local prefix = ARGV[1]
local gone = {}
for i = 2, #ARGV do
  local blob = prefix .. ':blob:' .. ARGV[i]
  local condemned = redis.call('SREM', prefix .. ':condemned', ARGV[i]) == 1
  local new = redis.call('SISMEMBER', prefix .. ':dropped', ARGV[i]) == 0
  if new and (condemned or redis.call('EXISTS', blob) == 0) then
    redis.call('DEL', blob)
    redis.call('SADD', prefix .. ':dropped', ARGV[i])
    gone[#gone + 1] = ARGV[i]
  end
end
return gone
