-- A new or changed order has a positive amount.
SELECT id, cents FROM (FROM lake.shop.orders EXCEPT FROM base.shop.orders)
WHERE cents IS NULL OR cents <= 0
