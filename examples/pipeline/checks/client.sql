-- A new or changed order has a client.
SELECT id, client FROM (FROM lake.shop.orders EXCEPT FROM base.shop.orders)
WHERE client IS NULL OR client = ''
